//! What all workers of a load of HTTP share: what contents are compared with, and the journal.

use std::sync::Arc;

use super::{
    journal::{Columns, JournalFile, Written},
    spec::HttpSpec,
    standard::Standards,
};
use crate::{error::LoadError, recorder::WindowBounds, spec::LoadSpec};

/// What all workers share.
#[derive(Debug)]
pub(crate) struct HttpCommon {
    pub(crate) standards: Standards,
    pub(crate) journal: Option<JournalFile>,
}

impl HttpCommon {
    /// For a load whose rows are of the window between these bounds. Opens the journal if there is to be one.
    pub(crate) fn new(
        http: &HttpSpec,
        load: &LoadSpec,
        bounds: &Arc<WindowBounds>,
    ) -> Result<Self, LoadError> {
        let journal = |path| {
            let columns = Columns {
                urls: http.urls.iter().map(|url| url.text.clone()).collect(),
                sent_bytes: http.requests()?.iter().map(Vec::len).collect(),
                connections: load.connections,
            };
            JournalFile::open(path, columns, bounds)
        };
        Ok(Self { standards: Standards::new(http), journal: http.jtl.as_deref().map(journal).transpose()? })
    }

    /// What became of the journal's rows; every worker has ended.
    pub(crate) fn written(&self) -> Written {
        self.journal.as_ref().map(JournalFile::close).unwrap_or_default()
    }
}
