// Package start holds what every Go peer does before it serves: read its arguments, pin the process, listen.
// Nothing of it is part of what is compared.
package start

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Arguments reads `PORT WORD... [CPUS]`: the address to listen on, and the words a peer needs besides, which names
// calls by name. The process is pinned when CPUs were named (last argument, or WEIR_CPUS).
func Arguments(names ...string) (address string, words []string) {
	count := len(names)
	if len(os.Args) < 2+count {
		Fail(2, "usage: %s [CPUS]; PORT is a number such as 7000",
			strings.Join(append([]string{"PORT"}, names...), " "))
	}
	port, err := strconv.ParseUint(os.Args[1], 10, 16)
	if err != nil {
		Fail(2, "PORT is a number below 65536, not %q", os.Args[1])
	}
	cpus := os.Getenv("WEIR_CPUS")
	if len(os.Args) > 2+count {
		cpus = os.Args[2+count]
	}
	if cpus != "" {
		pin(cpus)
	}
	return fmt.Sprintf("127.0.0.1:%d", port), os.Args[2 : 2+count]
}

// Listen listens on the address and says so. The backlog is the system's largest, which is what net asks for.
func Listen(address string) net.Listener {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		Fail(1, "%v", err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	return listener
}

// Fail says why and ends the process.
func Fail(code int, format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(code)
}

// The marker that the process already runs on its CPUs; without it, it would start itself forever.
const pinnedVariable = "WEIR_PEER_PINNED"

// pin restricts the whole process to a list such as "0" or "0,2". Go has started its threads before main,
// and affinity belongs to a thread, so the process sets its own and replaces itself: every thread of the
// new image inherits it, and GOMAXPROCS follows.
func pin(cpus string) {
	if os.Getenv(pinnedVariable) == cpus {
		return
	}
	if err := setAffinity(cpus); err != nil {
		Fail(13, "cannot pin to CPUs %s: %v", cpus, err)
	}
	if err := os.Setenv(pinnedVariable, cpus); err != nil {
		Fail(1, "%v", err)
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, os.Environ())
	}
	Fail(1, "cannot start again on CPUs %s: %v", cpus, err)
}
