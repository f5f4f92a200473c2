//! Replaces a study's contents by a mix of requests from the command line, and removes what the file says of
//! contents.

use toml::{Table, Value};
use weir_record::http::RequestMix;

use super::{
    choice_error::ChoiceError,
    choices::{is_combination, protocol_of, shown},
};
use crate::protocol;

/// The factor that a mix replaces.
pub(super) const CONTENT: &str = "content";

/// Lists of tables from which the tables about one content are removed.
const ABOUT_CELLS: [&str; 5] = ["comparison", "goal", "added_cost", "cause", "contrast"];

/// Lists that are about requests which others made.
const PUBLISHED: [&str; 4] = ["published", "published_run", "published_table", "published_level"];

/// Keys that distinguish cells with equal levels.
const APART: [&str; 7] = ["share", "rate", "poisson", "slice", "alternate", "neighbours", "arms"];

/// Sets the requests of the study and removes those of the file.
pub(super) fn set(study: &mut Table, mix: &RequestMix) -> Result<(), ChoiceError> {
    if protocol_of(study) != "http" {
        return Err(ChoiceError::Requests);
    }
    drop_contents(study);
    // Every value of a mix can be a TOML value.
    if let Ok(Value::Table(mix)) = Value::try_from(mix) {
        study.extend(mix);
    }
    Ok(())
}

fn drop_contents(study: &mut Table) {
    for table in ["factors", "primary"] {
        if let Some(Value::Table(table)) = study.get_mut(table) {
            table.remove(CONTENT);
        }
    }
    tables(study, "confirmatory").for_each(|table| _ = table.remove(CONTENT));
    let factors = study.get("factors").and_then(Value::as_table).cloned();
    if let Some(Value::Array(cells)) = study.get_mut("cell") {
        let is_left = |cell: &mut Table| {
            let had_content = cell.remove(CONTENT).is_some();
            let combined = factors.as_ref().filter(|_| had_content);
            combined.is_none_or(|factors| !is_combination(cell, factors, "http"))
        };
        cells.retain_mut(|cell| cell.as_table_mut().is_none_or(is_left));
    }
    drop_twice(study);
    drop_published_and_asked(study);
    if let Some(Value::Table(without)) = study.get_mut("without") {
        without.iter_mut().filter_map(|(_, it)| it.as_table_mut()).for_each(drop_published_and_asked);
    }
}

/// Removes published figures, which are of other requests, and questions about one content.
fn drop_published_and_asked(study: &mut Table) {
    for list in PUBLISHED {
        study.remove(list);
    }
    for list in ABOUT_CELLS {
        if let Some(Value::Array(tables)) = study.get_mut(list) {
            tables.retain(|table| !speaks_of_content(table));
        }
    }
    for arm in tables(study, "arm") {
        if let Some(Value::Table(only)) = arm.get_mut("where") {
            only.remove(CONTENT);
        }
    }
}

fn speaks_of_content(value: &Value) -> bool {
    match value {
        Value::Table(table) => table.contains_key(CONTENT) || table.values().any(speaks_of_content),
        Value::Array(values) => values.iter().any(speaks_of_content),
        _ => false,
    }
}

/// Removes duplicates that arise without the content: claims, and cells without a claim that another cell covers.
fn drop_twice(study: &mut Table) {
    if let Some(Value::Array(claims)) = study.get_mut("confirmatory") {
        let all = std::mem::take(claims);
        for claim in all {
            if !claims.contains(&claim) {
                claims.push(claim);
            }
        }
    }
    let Some(Value::Array(cells)) = study.get_mut("cell") else { return };
    let mut place = 0;
    while let Some(cell) = cells.get(place) {
        let covers = |(other, by): (usize, &Value)| {
            // If two cover each other, the first stays, or the one with a claim.
            let is_first = other < place || claims_something(by) || !covered(by, cell);
            other != place && is_first && covered(cell, by)
        };
        match !claims_something(cell) && cells.iter().enumerate().any(covers) {
            true => _ = cells.remove(place),
            false => place += 1,
        }
    }
}

fn claims_something(cell: &Value) -> bool {
    cell.get("role").and_then(Value::as_str).is_some_and(|role| role != "exploratory")
}

/// Whether another cell, or the cells that it stands for, contains everything that this one asks for.
fn covered(cell: &Value, by: &Value) -> bool {
    let Ok(http) = protocol::named("http") else { return false };
    let levels = |table: &Value, key: &str, default: Option<String>| match table.get(key) {
        Some(Value::Array(levels)) => levels.iter().map(shown).collect(),
        Some(level) => vec![shown(level)],
        None => default.into_iter().collect::<Vec<_>>(),
    };
    let is_subset = http.factors().iter().all(|factor| {
        let default = || factor.default.as_ref().map(ToString::to_string);
        let (own, all) = (levels(cell, factor.key, default()), levels(by, factor.key, default()));
        own.iter().all(|level| all.contains(level)) && own.is_empty() == all.is_empty()
    });
    is_subset && APART.iter().all(|key| cell.get(key) == by.get(key))
}

fn tables<'s>(study: &'s mut Table, list: &str) -> impl Iterator<Item = &'s mut Table> {
    study.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_table_mut)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use weir_record::http::MixedRequest;

    use super::*;
    use crate::{
        builtin,
        host_defaults::HostDefaults,
        study_file::{self, Choices, chosen},
    };

    fn mix() -> Choices {
        let paths = ["/a", "/b"].map(str::to_owned);
        let request = paths.map(|path| MixedRequest {
            name: path.clone(),
            method: "GET".to_owned(),
            path,
            weight: 1,
            expect_status: vec![200],
            expect_content: "first".to_owned(),
            ..MixedRequest::default()
        });
        Choices { requests: Some(RequestMix { request: request.into() }), ..Choices::default() }
    }

    fn cells(text: &str, plan: Option<String>) -> Vec<String> {
        let text = chosen(text, &Choices { plan, ..mix() }).expect("they fit");
        let host = HostDefaults { server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() };
        let study = study_file::parse(Path::new("a.toml"), &text, &host);
        let spec = study.unwrap_or_else(|error| panic!("{error}\n{text}")).spec;
        assert!(spec.cells.iter().all(|cell| cell.http.as_ref().is_some_and(|http| http.mix)));
        spec.cells.into_iter().map(|cell| cell.id).collect()
    }

    #[test]
    fn every_built_in_study_of_http_asks_for_a_mix_in_each_cell_once() {
        let mut studies = 0;
        for study in builtin::ALL.into_iter().filter(|it| it.text.contains("\nprotocol = \"http\"")) {
            for plan in std::iter::once(None).chain(study.plans().into_iter().map(Some)) {
                let ids = cells(study.text, plan.clone());
                let once: BTreeSet<&String> = ids.iter().collect();
                assert_eq!(once.len(), ids.len(), "{} {plan:?}: {ids:?}", study.name);
                assert!(ids.iter().all(|id| id.contains("-mix-")), "{ids:?}");
                studies += 1;
            }
        }
        assert!(studies >= 3, "{studies}");
    }

    #[test]
    fn contents_are_no_levels_beside_a_mix_and_cells_that_differ_in_them_alone_are_one() {
        let text = "name = \"x\"\nprotocol = \"http\"\nsaturation = true\n\
                    [factors]\nconnections = [1, 10]\ncontent = [\"html\", 64]\n\
                    [primary]\nconnections = 10\ncontent = 64\n\
                    [[confirmatory]]\nconnections = 1\ncontent = 64\n\
                    [[confirmatory]]\nconnections = 1\ncontent = \"html\"\n\
                    [[cell]]\nconnections = 50\ncontent = \"image\"\nclose = [false, true]\n\
                    [[cell]]\nconnections = 50\ncontent = [64, 1024]\n\
                    [[cell]]\nconnections = 10\ncontent = \"image\"\n\
                    [[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n\
                    [[arm]]\nname = \"poll\"\ndriver = \"poll\"\nwhere = { content = 64 }\n\
                    [[contrast]]\nof = { content = 64 }\nto = { content = \"html\" }\n";
        let closed = ["c1", "c10", "c50"].map(|all| format!("{all}-d1-mix-closed"));
        let ids = cells(text, None);
        let of = |end: &str| ids.iter().filter(|id| id.ends_with(end)).collect::<BTreeSet<_>>();
        assert_eq!(of("mix-closed"), closed.iter().collect(), "{ids:?}");
        assert_eq!(of("mix-reconnect-closed").len(), 1, "{ids:?}");
        let echo = text.replace("protocol = \"http\"\n", "");
        assert_eq!(chosen(&echo, &mix()), Err(ChoiceError::Requests));
        let asked = ("content".to_owned(), vec!["64".to_owned()]);
        let both = Choices { levels: vec![asked], ..mix() };
        assert_eq!(chosen(text, &both), Err(ChoiceError::ContentOfMix));
        let in_file = text.to_owned() + "[[request]]\npath = \"/\"\n";
        let of_file = chosen(&in_file, &Choices { requests: None, ..both });
        assert_eq!(of_file, Err(ChoiceError::ContentOfMix), "of the file's own mix");
    }

    #[test]
    fn a_file_says_no_content_beside_its_requests() {
        let text = |factors: &str, cell: &str| {
            format!(
                "name = \"x\"\nprotocol = \"http\"\n[factors]\nconnections = [4]\n{factors}\n{cell}\n\
                 [[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n[[arm]]\nname = \"poll\"\ndriver = \"poll\"\n\
                 [[request]]\npath = \"/\"\n"
            )
        };
        let read = |text: &str| study_file::parse(Path::new("a.toml"), text, &HostDefaults::default());
        assert!(read(&text("", "")).is_ok());
        for (factors, cell, told) in [
            ("content = [64, 1024]", "", "5: content: "),
            ("", "[[cell]]\nconnections = 9\ncontent = 64", "8: cell.content: "),
        ] {
            let error = read(&text(factors, cell)).expect_err("it would mean nothing").to_string();
            assert!(error.starts_with(&format!("a.toml:{told}")), "{error}");
            assert!(error.contains("[[request]]"), "{error}");
        }
    }
}
