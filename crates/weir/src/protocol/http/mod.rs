//! HTTP/1.1: `weir serve http` and `weir load http`.

mod arguments;
mod load;
mod serve;
mod table;

pub(crate) use arguments::{LoadHttp, ServeHttp};
pub(super) use serve::run as serve;
