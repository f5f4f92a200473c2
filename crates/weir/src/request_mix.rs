//! The requests of a mix, from a file to the requests of a load or a study.

use std::{fs, path::Path};

use anyhow::Result;
use weir_lab::study_file::{self, hex_bytes};
use weir_load::{ExpectedContent, HttpUrl, OwnRequest};
use weir_record::http::{MixedRequest, RequestMix};
use weir_report::localized;

use crate::{exit::UsageError, language, shipped};

/// Reads a file of requests, with the files of bodies that it names.
pub(crate) fn read(path: &Path) -> Result<RequestMix> {
    if let Some(mix) = shipped::find(path) {
        return Ok(serde_json::from_slice(mix)?);
    }
    let language = language::of_command_line();
    let text = fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        UsageError(localized!(
            language,
            "--request-mix {path}: {error}",
            "--request-mix {path}: 읽을 수 없습니다({error})",
            "--request-mix {path}：无法读取（{error}）",
        ))
    })?;
    Ok(study_file::requests(path, &text).map_err(|error| UsageError(error.localized(language)))?)
}

/// The requests of a load on a server of this name.
pub(crate) fn urls(mix: RequestMix, host: &str) -> Vec<HttpUrl> {
    mix.request.into_iter().map(|request| url(request, host)).collect()
}

fn url(request: MixedRequest, host: &str) -> HttpUrl {
    let hex = request.body_hex.as_deref().and_then(hex_bytes);
    let expect_content =
        if request.expect_content == "any" { ExpectedContent::Anything } else { ExpectedContent::AsFirst };
    let own = OwnRequest {
        method: request.method,
        headers: request.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
        content: request.body.map(String::into_bytes).or(hex),
        weight: request.weight,
        expect_status: request.expect_status,
        expect_content,
        expect_length: request.expect_length,
        expect_hash: request.expect_hash.as_deref().and_then(hex_bytes),
    };
    HttpUrl { text: request.name, host: host.to_owned(), path: request.path, own: Some(Box::new(own)) }
}
