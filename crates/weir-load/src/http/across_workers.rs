//! What all workers of an HTTP load share: the expected contents, and the log of results.

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
    /// Shared state for a load whose rows belong to the window between these bounds. Opens the log if one was
    /// requested.
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

    /// How many log rows were written and dropped; call after every worker has ended.
    pub(crate) fn written(&self) -> Written {
        self.results.as_ref().map(ResultLog::close).unwrap_or_default()
    }
}
