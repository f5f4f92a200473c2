//! The blocks as one page, without scripts or outside resources, in the style of the study's page.

use maud::{Markup, html};

use super::blocks::{Block, Blocks};
use crate::{
    display, html,
    language::{Language, localized},
    table::Table,
    words::Word,
};

pub(super) fn document(blocks: &Blocks, language: Language, above: &Markup) -> String {
    let title = format!("weir observe{}{}", language.colon(), blocks.title);
    let body = html! { (above) main { (content(blocks, language)) } };
    html::document(language, &title, &body)
}

/// Everything below the head of the page.
pub(super) fn content(blocks: &Blocks, language: Language) -> Markup {
    html! {
        header.top {
            p.study { "weir observe" }
            // A page has one main heading: the conclusion, or else what was observed.
            @if blocks.conclusion.is_empty() { h1.asks { (blocks.title) } } @else { p.asks { (blocks.title) } }
        }
        @if let Some((first, others)) = blocks.conclusion.split_first() {
            section.card.doubt {
                h1 { (display::keep_together(first)) }
                @for line in others { p.beside { (display::keep_together(line)) } }
            }
        }
        @for block in &blocks.blocks { (section(block, language)) }
    }
}

fn section(block: &Block, language: Language) -> Markup {
    html! {
        section {
            h2 { (block.title) }
            @if !block.help.is_empty() { p.help { (block.help) } }
            @match (&block.picture, &block.table) {
                (Some(picture), content) => {
                    (picture)
                    @if let Some(content) = content {
                        details {
                            summary { (Word::NumbersInTable.text(language)) }
                            (table(&content.table, language))
                        }
                    }
                }
                (None, Some(content)) => (table(&content.table, language)),
                (None, None) => {}
            }
            @for line in &block.lines { p { (display::keep_together(line)) } }
        }
    }
}

fn table(content: &Table, language: Language) -> Markup {
    let count = content.left_out;
    html! {
        (html::scrolled(language, &html! {
            (html::columns(content, |_| Markup::default()))
            @if count > 0 {
                p.hint { (localized!(language, "and {count} more", "그 밖에 {count}개", "另有 {count} 个")) }
            }
        }))
    }
}
