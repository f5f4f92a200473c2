//! Which two studies are compared: the form on the list, and the page with the form alone. It proposes two finished
//! runs of one study. Pure text out.

use maud::{Markup, html};
use weir_report::document;

use crate::{choice::Entry, folder::Found, forms, pages::above, reader::Reader, words};

/// A study that a form can name, and what must agree before two can be compared.
struct Candidate<'e> {
    /// Its folder, which is text.
    name: &'e str,
    /// The study and its baseline; absent while its schedule is not finished.
    finished: Option<(&'e str, &'e str)>,
    machine: &'e str,
}

impl<'e> Candidate<'e> {
    fn of(entry: &'e Entry<'_>) -> Option<Self> {
        let (name, card) = (entry.found.name.to_str()?, entry.card()?);
        let is_over = card.blocks_stored >= card.blocks && !entry.found.is_running;
        let is_judged = is_over && entry.judgement.as_ref().is_some_and(|it| it.is_judged);
        let baseline = card.arms.first().map_or("", String::as_str);
        Some(Self { name, finished: is_judged.then_some((&card.name, baseline)), machine: &card.machine })
    }
}

/// The places of two runs of one study, the earlier one first, of candidates from the newest to the oldest: on one
/// machine where there are two, otherwise on any. `None` if there are no such runs.
fn pair(all: &[Candidate<'_>]) -> Option<(usize, usize)> {
    let earlier = |later: usize, is_alike: &dyn Fn(&Candidate<'_>, &Candidate<'_>) -> bool| {
        let of = |place: &usize| all[later].finished.is_some() && is_alike(&all[*place], &all[later]);
        (later + 1..all.len()).find(of)
    };
    let is_run = |one: &Candidate<'_>, other: &Candidate<'_>| one.finished == other.finished;
    let is_here =
        |one: &Candidate<'_>, other: &Candidate<'_>| is_run(one, other) && one.machine == other.machine;
    let first = |is_alike: &dyn Fn(&Candidate<'_>, &Candidate<'_>) -> bool| {
        (0..all.len()).find_map(|later| Some((earlier(later, is_alike)?, later)))
    };
    first(&is_here).or_else(|| first(&is_run))
}

/// The form: a choice of these studies if they are all there are, otherwise two names.
pub(crate) fn form(reader: &Reader, entries: &[Entry<'_>], is_whole: bool, suggested: &[Found]) -> Markup {
    let all: Vec<Candidate<'_>> = entries.iter().filter_map(Candidate::of).collect();
    let names: Vec<&str> = all.iter().map(|it| it.name).collect();
    let proposed = pair(&all);
    let none = proposed.is_none().then_some(words::NO_PAIR);
    if is_whole {
        return forms::choose_two(reader, &names, proposed.unwrap_or((1, 0)), none);
    }
    forms::name_two(reader, suggested, proposed.map(|(earlier, later)| [names[earlier], names[later]]))
}

/// The page of the form alone.
pub(crate) fn page(reader: &Reader, entries: &[Entry<'_>], is_whole: bool, suggested: &[Found]) -> String {
    let body = html! {
        (above(reader, ("/compare", &[]), None))
        main {
            h1 { (reader.say(words::COMPARE)) }
            @if suggested.len() < 2 { p { (reader.say(words::NOTHING_TO_COMPARE)) } }
            (form(reader, entries, is_whole, suggested))
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::COMPARE)), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_finished_runs_of_one_study_are_proposed_and_those_of_one_machine_first() {
        let of = |all: &[(Option<&'static str>, &'static str)]| {
            let candidate = |(study, machine): &(Option<&'static str>, &'static str)| Candidate {
                name: "",
                finished: study.map(|study| (study, "epoll")),
                machine,
            };
            pair(&all.iter().map(candidate).collect::<Vec<_>>())
        };
        let [quick, tps] = [(Some("quick"), "a"), (Some("tps"), "a")];
        assert_eq!(of(&[quick, tps, quick]), Some((2, 0)));
        assert_eq!(of(&[tps, quick, quick]), Some((2, 1)));
        assert_eq!(
            of(&[(None, "a"), (None, "a"), quick, quick]),
            Some((3, 2)),
            "unfinished ones decide nothing"
        );
        let elsewhere = (Some("quick"), "b");
        assert_eq!(of(&[quick, elsewhere, quick]), Some((2, 0)), "another machine has other figures");
        assert_eq!(of(&[quick, elsewhere]), Some((1, 0)));
        assert_eq!((of(&[quick, tps]), of(&[]), of(&[(None, "a"), (None, "a")])), (None, None, None));
    }
}
