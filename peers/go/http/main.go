// HTTP on Go's net/http: its server as it is, one goroutine a connection, one content shared by all replies.
// TCP_NODELAY is what net sets on every connection by itself.
package main

import (
	"net/http"
	"os"
	"strconv"

	"weir/peers/go/start"
)

// content answers every path. The header values are made once: what a reply adds to its map is not copied.
type content struct {
	bytes       []byte
	contentType []string
	length      []string
}

func main() {
	address, words := start.Arguments("FILE", "CONTENT_TYPE")
	bytes, err := os.ReadFile(words[0])
	if err != nil {
		start.Fail(1, "%v", err)
	}
	handler := &content{
		bytes:       bytes,
		contentType: []string{words[1]},
		length:      []string{strconv.Itoa(len(bytes))},
	}
	// Without a mux, which would only compare paths, and without timeouts, which would arm a timer for each request.
	server := &http.Server{Handler: handler}
	start.Fail(1, "%v", server.Serve(start.Listen(address)))
}

func (content *content) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	header := writer.Header()
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		writer.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	header["Content-Type"] = content.contentType
	header["Content-Length"] = content.length
	// It takes no bytes of a HEAD request; a connection that is gone is for the generator to count.
	_, _ = writer.Write(content.bytes)
}
