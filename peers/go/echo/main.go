// Echo on Go's net package: one goroutine and one buffer a connection.
// TCP_NODELAY is what net sets on every connection by itself.
package main

import (
	"net"

	"weir/peers/go/start"
)

const bufferBytes = 16 * 1024

func main() {
	address, _ := start.Arguments()
	listener := start.Listen(address)
	for {
		connection, err := listener.Accept()
		if err != nil {
			start.Fail(1, "%v", err)
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
