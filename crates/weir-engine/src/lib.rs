//! One async program, any way of waiting: io_uring, epoll, poll, select, blocking, simulated.
