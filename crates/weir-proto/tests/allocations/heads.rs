//! Heads from real clients and servers.

/// A browser's request for a page: 704 bytes, 14 fields.
pub const BROWSER: &[u8] = b"GET /articles/2024/11/a-weir-and-its-river.html?from=index&page=2 HTTP/1.1\r\n\
    Host: www.weir.example\r\n\
    Connection: keep-alive\r\n\
    Cache-Control: max-age=0\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Dest: document\r\n\
    Referer: http://www.weir.example/index.html\r\n\
    Accept-Encoding: gzip, deflate\r\n\
    Accept-Language: en-GB,en;q=0.9,ko;q=0.8\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
    If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    \r\n";

/// A load generator's request.
pub const SMALL: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8088\r\nAccept: */*\r\n\r\n";

/// A server's response.
pub const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Server: weir\r\n\
    Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    Content-Type: text/html; charset=utf-8\r\n\
    Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    ETag: \"2ebc98a1-0-4d2\"\r\n\
    Accept-Ranges: bytes\r\n\
    Content-Length: 0\r\n\
    \r\n";
