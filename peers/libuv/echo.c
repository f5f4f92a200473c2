/* Echo on libuv: one loop, one hot receive buffer, try-write first, a queued write for what did not fit. */

#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { BUFFER_BYTES = 64 * 1024, BACKLOG = 1024 };

/* What a full socket left over. It owns its bytes: the next receive overwrites the hot buffer. */
struct remainder {
    uv_write_t request;
    char bytes[];
};

static char hot_buffer[BUFFER_BYTES];

static void on_received(uv_stream_t *stream, ssize_t received, const uv_buf_t *buffer);

static void on_closed(uv_handle_t *handle) { free(handle); }

static void close_stream(uv_stream_t *stream) {
    if (!uv_is_closing((uv_handle_t *)stream)) uv_close((uv_handle_t *)stream, on_closed);
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(hot_buffer, BUFFER_BYTES);
}

static void on_remainder_sent(uv_write_t *request, int status) {
    uv_stream_t *stream = request->handle;
    free(request->data);
    if (uv_is_closing((uv_handle_t *)stream)) return;
    if (status < 0 || uv_read_start(stream, on_allocate, on_received) < 0) close_stream(stream);
}

/* Queues the rest and stops receiving until it is gone, so that a slow reader costs one buffer at most. */
static int queue_remainder(uv_stream_t *stream, const char *bytes, size_t length) {
    struct remainder *remainder = malloc(sizeof *remainder + length);
    if (remainder == NULL) return UV_ENOMEM;
    memcpy(remainder->bytes, bytes, length);
    remainder->request.data = remainder;
    uv_buf_t rest = uv_buf_init(remainder->bytes, (unsigned)length);
    int status = uv_write(&remainder->request, stream, &rest, 1, on_remainder_sent);
    if (status < 0) {
        free(remainder);
        return status;
    }
    return uv_read_stop(stream);
}

static void on_received(uv_stream_t *stream, ssize_t received, const uv_buf_t *buffer) {
    if (received == 0) return;
    if (received < 0) {
        close_stream(stream);
        return;
    }
    uv_buf_t reply = uv_buf_init(buffer->base, (unsigned)received);
    int sent = uv_try_write(stream, &reply, 1);
    if (sent == received) return;
    if (sent == UV_EAGAIN) sent = 0;
    if (sent < 0 || queue_remainder(stream, buffer->base + sent, (size_t)(received - sent)) < 0) {
        close_stream(stream);
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    if (status < 0) {
        fprintf(stderr, "accept: %s\n", uv_strerror(status));
        exit(1);
    }
    uv_tcp_t *client = malloc(sizeof *client);
    if (client == NULL || uv_tcp_init(listener->loop, client) < 0) abort();
    if (uv_accept(listener, (uv_stream_t *)client) < 0 || uv_tcp_nodelay(client, 1) < 0 ||
        uv_read_start((uv_stream_t *)client, on_allocate, on_received) < 0) {
        close_stream((uv_stream_t *)client);
    }
}

/* Restricts the process, which has one thread yet, to a list such as "0" or "0,2". */
static int pin(const char *cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const char *at = cpus;; at++) {
        char *end;
        unsigned long cpu = strtoul(at, &end, 10);
        if (end == at || cpu >= CPU_SETSIZE || (*end != ',' && *end != '\0')) return 2;
        CPU_SET(cpu, &set);
        if (*end == '\0') break;
        at = end;
    }
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : 13;
}

static void or_exit(int status, const char *what) {
    if (status >= 0) return;
    fprintf(stderr, "%s: %s\n", what, uv_strerror(status));
    exit(1);
}

int main(int count, char **arguments) {
    char *end = NULL;
    unsigned long port = count > 1 ? strtoul(arguments[1], &end, 10) : 0;
    if (count < 2 || *end != '\0' || end == arguments[1] || port > 65535) {
        fprintf(stderr, "usage: PORT [CPUS], for example 7000 0\n");
        return 2;
    }
    const char *cpus = count > 2 ? arguments[2] : getenv("WEIR_CPUS");
    if (cpus != NULL && *cpus != '\0') {
        int refused = pin(cpus);
        if (refused != 0) {
            fprintf(stderr, "cannot pin to CPUs %s\n", cpus);
            return refused;
        }
    }

    struct sockaddr_in address;
    uv_tcp_t listener;
    or_exit(uv_ip4_addr("127.0.0.1", (int)port, &address), "address");
    or_exit(uv_tcp_init(uv_default_loop(), &listener), "socket");
    or_exit(uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0), "bind");
    or_exit(uv_listen((uv_stream_t *)&listener, BACKLOG, on_connection), "listen");
    int length = sizeof address;
    or_exit(uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &length), "address");
    printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
