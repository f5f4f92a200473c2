//! The page's blocks in GitHub-flavoured Markdown; charts become the tables they are drawn from.

use weir_record::sweep::{PollingResult, SweepResult};

use super::{sentence, sheet::Sheet, sheets, texts::Text};
use crate::{language::Language, markdown::escape};

pub(super) fn document(result: &PollingResult, language: Language) -> String {
    let mut out = format!("# {} `polling`\n\n", Text::Study.of(language));
    let colon = language.colon();
    paragraph(&mut out, Text::Asks.of(language));
    let answer = sentence::answer(result, language);
    let badge = sentence::badge(result).of(language);
    if let Some((headline, rest)) = answer.split_first() {
        paragraph(&mut out, &format!("**{badge}**{colon}{}", escape(headline)));
        rest.iter().for_each(|line| out.push_str(&format!("- {}\n", escape(line))));
    }
    for (title, detail) in sentence::chips(result, language) {
        out.push_str(&format!("- {title}{colon}{}\n", escape(&detail)));
    }
    let missing = sheets::missing(result, language);
    if !missing.is_empty() {
        heading(&mut out, Text::MissingTitle.of(language));
        missing.iter().for_each(|(name, reason)| {
            out.push_str(&format!("- **{}**{colon}{}\n", escape(name), escape(reason)))
        });
    }
    section(&mut out, language, Text::FrontierTitle, Text::FrontierHelp.of(language));
    of_worlds(&mut out, result, language, |sweep| vec![(String::new(), sheets::frontier(sweep, language))]);
    section(&mut out, language, Text::MethodsTitle, Text::MethodsHelp.of(language));
    of_worlds(&mut out, result, language, |sweep| {
        let of = |phase| sheets::methods(sweep, phase, language);
        sweep.phases.iter().map(|phase| (phase.name.clone(), of(phase))).collect()
    });
    if !result.observations.is_empty() {
        section(&mut out, language, Text::PublishedTitle, Text::PublishedHelp.of(language));
        out.push_str(&sheets::observations(result, language).markdown());
    }
    section(&mut out, language, Text::GainTitle, Text::GainHelp.of(language));
    of_worlds(&mut out, result, language, |sweep| {
        let prices = Text::PriceTitle.of(language).to_owned();
        vec![(String::new(), sheets::gains(sweep, language)), (prices, sheets::prices(sweep, language))]
    });
    let help = Text::VolumesHelp.fill(language, &["5"]);
    section(&mut out, language, Text::VolumesTitle, &help);
    of_worlds(&mut out, result, language, |sweep| {
        let distances = Text::Distances.of(language).to_owned();
        vec![
            (String::new(), sheets::volumes(sweep, language)),
            (distances, sheets::distances(sweep, language)),
        ]
    });
    if !result.feeding.is_empty() {
        section(&mut out, language, Text::FeedingTitle, Text::FeedingHelp.of(language));
        out.push_str(&sheets::feeding(result, language).markdown());
    }
    heading(&mut out, Text::EmulatedTitle.of(language));
    sentence::notes(result, language).iter().for_each(|note| out.push_str(&format!("- {}\n", escape(note))));
    let environment = sheets::environment(result, language);
    if !environment.rows.is_empty() {
        section(&mut out, language, Text::EnvironmentTitle, Text::EnvironmentHelp.of(language));
        out.push_str(&environment.markdown());
    }
    heading(&mut out, Text::ReproduceTitle.of(language));
    out.push_str(&format!("```\n{}\n```\n", result.reproduce.replace("```", "'''")));
    out
}

fn of_worlds(
    out: &mut String,
    result: &PollingResult,
    language: Language,
    tables: impl Fn(&SweepResult) -> Vec<(String, Sheet)>,
) {
    for sweep in &result.sweeps {
        let tables = tables(sweep);
        if tables.iter().all(|(_, sheet)| sheet.rows.is_empty()) {
            continue;
        }
        let (name, detail) = sheets::world(sweep, language);
        out.push_str(&format!("### {name}\n\n"));
        paragraph(out, &escape(&detail));
        for (title, sheet) in tables.into_iter().filter(|(_, sheet)| !sheet.rows.is_empty()) {
            if !title.is_empty() {
                paragraph(out, &format!("**{}**", escape(&title)));
            }
            out.push_str(&sheet.markdown());
        }
    }
}

fn section(out: &mut String, language: Language, title: Text, help: &str) {
    heading(out, title.of(language));
    paragraph(out, help);
}

fn heading(out: &mut String, title: &str) {
    out.truncate(out.trim_end().len());
    out.push_str(&format!("\n\n## {title}\n\n"));
}

fn paragraph(out: &mut String, text: &str) {
    if !text.is_empty() {
        out.push_str(text);
        out.push_str("\n\n");
    }
}
