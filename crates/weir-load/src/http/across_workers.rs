//! What all workers of a load of HTTP share: what contents are compared with, and the log of results.

use std::sync::Arc;

use super::{
    content_check::ExpectedContents,
    request_order::RequestOrder,
    result_log::{Columns, ResultLog, Written},
    spec::HttpSpec,
};
use crate::{error::LoadError, recorder::WindowBounds, spec::LoadSpec};

/// What all workers share.
#[derive(Debug)]
pub(crate) struct HttpCommon {
    pub(crate) expected: ExpectedContents,
    pub(crate) order: RequestOrder,
    pub(crate) results: Option<ResultLog>,
}

impl HttpCommon {
    /// For a load whose rows are of the window between these bounds. Opens their log if there is to be one.
    pub(crate) fn new(
        http: &HttpSpec,
        load: &LoadSpec,
        bounds: &Arc<WindowBounds>,
    ) -> Result<Self, LoadError> {
        let open = |path| {
            let columns = Columns {
                urls: http.urls.iter().map(|url| url.text.clone()).collect(),
                sent_bytes: http.requests()?.iter().map(Vec::len).collect(),
                connections: load.connections,
            };
            ResultLog::open(path, columns, bounds)
        };
        Ok(Self {
            expected: ExpectedContents::new(http),
            order: RequestOrder::new(http, load.seed),
            results: http.jtl.as_deref().map(open).transpose()?,
        })
    }

    /// What became of the log's rows; every worker has ended.
    pub(crate) fn written(&self) -> Written {
        self.results.as_ref().map(ResultLog::close).unwrap_or_default()
    }
}
