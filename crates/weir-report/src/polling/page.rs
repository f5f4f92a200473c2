//! The page: one file without scripts or outside resources, in the style of the other studies.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_record::sweep::{Outcome, PlaneKind, PollingResult, SweepResult, SweepWorld};

use super::{
    draw::{self, RatioFigure},
    sentence,
    sheet::Sheet,
    sheets,
    texts::{self, Text},
};
use crate::{chart, display, language::Language};

const STYLE: &str = include_str!("../html/style.css");
const REFERENCE_INTERRUPTS: &str = "5";

pub(super) fn page(result: &PollingResult, language: Language) -> String {
    let title = format!("{} polling: {}", Text::Study.of(language), sentence::badge(result).of(language));
    let document = html! {
        (DOCTYPE)
        html lang=(language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) "body{font-family:" (PreEscaped(language.fonts())) "}" }
            }
            body {
                main {
                    header.top {
                        p.study { (Text::Study.of(language)) " " b { "polling" } }
                        p.asks { (Text::Asks.of(language)) }
                    }
                    (card(result, language))
                    (chips(result, language))
                    (missing(result, language))
                    // The picture first: it says most at a glance.
                    (planes(result, language))
                    (frontier(result, language))
                    (figures(result, language))
                    (published(result, language))
                    (gains(result, language))
                    (volumes(result, language))
                    (feeding(result, language))
                    (methods(result, language))
                    (notes(result, language))
                    (environment(result, language))
                    (reproduce(result, language))
                }
            }
        }
    };
    document.into_string()
}

fn card(result: &PollingResult, language: Language) -> Markup {
    let (class, sign) = match sentence::outcome(result) {
        Some(Outcome::Holds) => ("good", "▲"),
        Some(Outcome::Fails) => ("bad", "▼"),
        Some(Outcome::Open) | None => ("doubt", "?"),
    };
    let sentences = sentence::answer(result, language);
    let (headline, rest) =
        sentences.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    html! {
        section.card.(class) aria-labelledby="verdict" {
            p.badge {
                span.sign aria-hidden="true" { (sign) }
                " " (sentence::badge(result).of(language))
            }
            h1 #verdict { (display::keep_together(headline)) }
            ul.absolute { @for line in rest { li { (display::keep_together(line)) } } }
        }
    }
}

fn chips(result: &PollingResult, language: Language) -> Markup {
    html! {
        ul.chips {
            @for (title, detail) in sentence::chips(result, language) {
                li { b { (title) } @if !detail.is_empty() { span { (detail) } } }
            }
        }
    }
}

fn missing(result: &PollingResult, language: Language) -> Markup {
    let missing = sheets::missing(result, language);
    html! {
        @if !missing.is_empty() {
            section.missing {
                h2 { (Text::MissingTitle.of(language)) }
                dl {
                    @for (name, reason) in &missing {
                        dt { (name) }
                        dd lang="en" { (display::keep_together(reason)) }
                    }
                }
            }
        }
    }
}

fn section(title: &str, help: &str, body: &Markup) -> Markup {
    html! {
        section {
            h2 { (title) }
            @if !help.is_empty() { p.help { (help) } }
            (body)
        }
    }
}

fn world(sweep: &SweepResult, language: Language) -> Markup {
    let (name, detail) = sheets::world(sweep, language);
    html! { h3.world { (name) " " span.faint { (detail) } } }
}

/// A block for each sweep for which it has something to say.
fn of_worlds(
    result: &PollingResult,
    language: Language,
    body: impl Fn(&SweepResult) -> Option<Markup>,
) -> Markup {
    html! {
        @for sweep in &result.sweeps {
            @if let Some(body) = body(sweep) {
                (world(sweep, language))
                (body)
            }
        }
    }
}

fn folded(sheet: &Sheet, language: Language) -> Markup {
    html! {
        details {
            summary { (Text::NumbersInTable.of(language)) }
            (sheet.html())
        }
    }
}

/// A chart; its numbers stand in a table of the page, or are folded below it.
fn figure(id: &str, title: &str, image: &Markup) -> Markup {
    html! {
        figure role="img" aria-labelledby=(id) {
            figcaption id=(id) { (title) }
            div.scroll { (image) }
        }
    }
}

fn frontier(result: &PollingResult, language: Language) -> Markup {
    let body = of_worlds(result, language, |sweep| {
        let sheet = sheets::frontier(sweep, language);
        (!sheet.rows.is_empty()).then(|| sheet.html())
    });
    section(Text::FrontierTitle.of(language), Text::FrontierHelp.of(language), &body)
}

fn legend(sweep: &SweepResult) -> Markup {
    html! {
        ul.legend {
            @for (style, name) in draw::families(sweep).into_iter().enumerate() {
                li { (chart::swatch(style)) " " (name) }
            }
        }
    }
}

fn planes(result: &PollingResult, language: Language) -> Markup {
    let of_phase = |sweep: &SweepResult, index: usize| {
        let phase = &sweep.phases[index];
        html! {
            div.pair {
                @for kind in [PlaneKind::Miss, PlaneKind::AddedP99] {
                    @let id = format!("plane-{:?}-{index}-{kind:?}", sweep.plan.world).to_lowercase();
                    @let axes = [texts::axis(kind), Text::CpuAxis].map(|axis| axis.of(language));
                    @let title = format!("{}{}{}", phase.name, language.colon(), axes.join(" × "));
                    (figure(&id, &title, &draw::plane(sweep, phase, kind, language)))
                }
            }
            (folded(&sheets::methods(sweep, phase, language), language))
        }
    };
    let body = of_worlds(result, language, |sweep| {
        (!sweep.phases.is_empty()).then(|| {
            html! {
                (legend(sweep))
                @for index in (0..sweep.phases.len()).rev() { (of_phase(sweep, index)) }
            }
        })
    });
    section(Text::PlanesTitle.of(language), Text::PlanesHelp.of(language), &body)
}

fn figures(result: &PollingResult, language: Language) -> Markup {
    let body = of_worlds(result, language, |sweep| {
        if matches!(sweep.plan.world, SweepWorld::Trace | SweepWorld::Recording) {
            return None;
        }
        let last = sweep.phases.last()?;
        let id = |number: u32| format!("figure-{number}-{:?}", sweep.plan.world).to_lowercase();
        let over_time = draw::over_time(sweep, language);
        let sleep = draw::over_ratios(sweep, last, RatioFigure::Sleep, language);
        let cpu = draw::over_ratios(sweep, last, RatioFigure::Cpu, language);
        let ratios = draw::ratios_over_time(sweep, last, language);
        Some(html! {
            @if let Some(image) = over_time {
                div.chart { (figure(&id(1), Text::FigureOne.of(language), &image)) }
            }
            @if let Some(image) = sleep {
                div.chart { (figure(&id(2), &Text::FigureTwo.fill(language, &[&last.name]), &image)) }
            }
            @if let Some(image) = cpu {
                div.chart { (figure(&id(3), &Text::FigureThree.fill(language, &[&last.name]), &image)) }
            }
            @if let Some(image) = ratios {
                div.chart { (figure(&id(4), &Text::FigureRatios.fill(language, &[&last.name]), &image)) }
            }
        })
    });
    section(Text::FiguresTitle.of(language), Text::FiguresHelp.of(language), &body)
}

fn published(result: &PollingResult, language: Language) -> Markup {
    if result.observations.is_empty() {
        return html! {};
    }
    let body = sheets::observations(result, language).html();
    section(Text::PublishedTitle.of(language), Text::PublishedHelp.of(language), &body)
}

fn gains(result: &PollingResult, language: Language) -> Markup {
    let body = of_worlds(result, language, |sweep| {
        let (gains, prices) = (sheets::gains(sweep, language), sheets::prices(sweep, language));
        (!gains.rows.is_empty() || !prices.rows.is_empty()).then(|| {
            html! {
                (gains.html())
                h3 { (Text::PriceTitle.of(language)) }
                (prices.html())
            }
        })
    });
    section(Text::GainTitle.of(language), Text::GainHelp.of(language), &body)
}

fn volumes(result: &PollingResult, language: Language) -> Markup {
    let body = of_worlds(result, language, |sweep| {
        let (volumes, distances) = (sheets::volumes(sweep, language), sheets::distances(sweep, language));
        (!volumes.rows.is_empty()).then(|| {
            html! {
                (volumes.html())
                details {
                    summary { (Text::Distances.of(language)) }
                    (distances.html())
                }
            }
        })
    });
    let help = Text::VolumesHelp.fill(language, &[REFERENCE_INTERRUPTS]);
    section(Text::VolumesTitle.of(language), &help, &body)
}

fn feeding(result: &PollingResult, language: Language) -> Markup {
    if result.feeding.is_empty() {
        return html! {};
    }
    let body = sheets::feeding(result, language).html();
    section(Text::FeedingTitle.of(language), Text::FeedingHelp.of(language), &body)
}

fn methods(result: &PollingResult, language: Language) -> Markup {
    let body = of_worlds(result, language, |sweep| {
        let last = sweep.phases.last()?;
        Some(html! {
            h3 { (last.name) }
            (sheets::methods(sweep, last, language).html())
        })
    });
    section(Text::MethodsTitle.of(language), Text::MethodsHelp.of(language), &body)
}

fn notes(result: &PollingResult, language: Language) -> Markup {
    let body = html! {
        ul.notes { @for note in sentence::notes(result, language) { li { (display::keep_together(&note)) } } }
    };
    section(Text::EmulatedTitle.of(language), "", &body)
}

fn environment(result: &PollingResult, language: Language) -> Markup {
    let sheet = sheets::environment(result, language);
    if sheet.rows.is_empty() {
        return html! {};
    }
    section(Text::EnvironmentTitle.of(language), Text::EnvironmentHelp.of(language), &sheet.html())
}

fn reproduce(result: &PollingResult, language: Language) -> Markup {
    let body = html! { pre.command { code { (result.reproduce) } } };
    section(Text::ReproduceTitle.of(language), "", &body)
}
