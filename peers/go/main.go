// Echo on Go's net package: one goroutine and one buffer a connection.
// TCP_NODELAY is what net sets on every connection by itself.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

const bufferBytes = 16 * 1024

func main() {
	if len(os.Args) < 2 {
		fail(2, "usage: PORT [CPUS], for example 7000 0")
	}
	port, err := strconv.ParseUint(os.Args[1], 10, 16)
	if err != nil {
		fail(2, "PORT is a number below 65536, not %q", os.Args[1])
	}
	cpus := os.Getenv("WEIR_CPUS")
	if len(os.Args) > 2 {
		cpus = os.Args[2]
	}
	if cpus != "" {
		pin(cpus)
	}

	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		fail(1, "%v", err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	for {
		connection, err := listener.Accept()
		if err != nil {
			fail(1, "%v", err)
		}
		go echo(connection)
	}
}

func echo(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, bufferBytes)
	for {
		received, err := connection.Read(buffer)
		if received > 0 {
			// Write returns only when everything went out, or with an error.
			if _, err := connection.Write(buffer[:received]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func fail(code int, format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(code)
}

// The marker that the process already runs on its CPUs; without it, it would start itself for ever.
const pinnedVariable = "WEIR_PEER_PINNED"

// pin restricts the whole process to a list such as "0" or "0,2". Go has started its threads before main,
// and affinity belongs to a thread, so the process sets its own and replaces itself: every thread of the
// new image inherits it, and GOMAXPROCS follows.
func pin(cpus string) {
	if os.Getenv(pinnedVariable) == cpus {
		return
	}
	if err := setAffinity(cpus); err != nil {
		fail(13, "cannot pin to CPUs %s: %v", cpus, err)
	}
	if err := os.Setenv(pinnedVariable, cpus); err != nil {
		fail(1, "%v", err)
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, os.Environ())
	}
	fail(1, "cannot start again on CPUs %s: %v", cpus, err)
}
