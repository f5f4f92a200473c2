//! Charts, HTML and Markdown from finished results; pure text out.
