//! A table of text. Properties of a whole column, its title and alignment, are stated once in the table and not in
//! every cell, because cells are most of a page.

use maud::{Markup, html};

use crate::{format::ABSENT, table::Table};

/// Most columns that have their titles next to their texts on a narrow page.
const COLUMNS_MAX: usize = 40;

/// Most columns that are text.
const TEXT_COLUMNS_MAX: usize = 8;

/// The table, with additional content after the first text of each row.
pub(crate) fn columns(content: &Table, after: impl Fn(usize) -> Markup) -> Markup {
    html! {
        table class=(classes(content)) style=(titles(&content.head)) {
            thead { tr { @for title in &content.head { th scope="col" { (title) } } } }
            tbody {
                @for (place, row) in content.rows.iter().enumerate() {
                    tr { @for (column, cell) in row.iter().enumerate() {
                        td { (cell) @if column == 0 { (after(place)) } }
                    } }
                }
            }
        }
    }
}

/// Facts about a table for the style sheet's rules: the number of text columns, and the empty columns. On a narrow
/// page, where each cell is a line, the empty ones are omitted.
fn classes(content: &Table) -> String {
    let is_empty = |column: &usize| {
        let of_row = |row: &Vec<String>| row.get(*column).is_none_or(|cell| cell == ABSENT);
        !content.rows.is_empty() && content.rows.iter().all(of_row)
    };
    let empty = (1..content.head.len().min(COLUMNS_MAX)).filter(is_empty);
    let empty: String = empty.map(|column| format!(" empty-{}", column + 1)).collect();
    format!("columns text-{}{empty}", content.text_columns)
}

/// The titles for the style sheet's rules, which identify a column only by its position.
fn titles(head: &[String]) -> String {
    let one = |(place, title): (usize, &String)| format!("--h{}:'{}'", place + 1, in_apostrophes(title));
    head.iter().enumerate().map(one).collect::<Vec<_>>().join(";")
}

/// Escapes a text for a style sheet: a backslash or an apostrophe needs a backslash, and a line break would end the
/// text.
fn in_apostrophes(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '\'') {
            escaped.push('\\');
        }
        escaped.push(if character.is_control() { ' ' } else { character });
    }
    escaped
}

/// Numbers are right-aligned, in a line whose title need not be one. On a narrow page, which hides the header, each
/// cell starts with its title, unless its column is empty.
pub(super) fn rules() -> String {
    let number = |text: usize| {
        let of = |cells: &str| format!(".text-{text} {cells}:nth-child(n+{})", text + 1);
        format!("{}{{text-align:right}}{}{{white-space:nowrap}}", of(":is(th,td)"), of("td"))
    };
    let title =
        |column: usize| format!(".columns td:nth-child({column})::before{{content:var(--h{column})}}");
    let empty = |column: usize| format!(".empty-{column} td:nth-child({column}){{display:none!important}}");
    let numbers: String = (0..=TEXT_COLUMNS_MAX).map(number).collect();
    let narrow: String = (1..=COLUMNS_MAX).map(title).chain((2..=COLUMNS_MAX).map(empty)).collect();
    format!("{numbers}@media (max-width:700px){{{narrow}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_told_once_and_a_title_ends_nowhere_but_at_its_end() {
        let head = ["cell", "arm's \\ \"ratio\"\n</table>"].map(str::to_owned).to_vec();
        let row = |cell: &str| vec![cell.to_owned(), "0.8".to_owned()];
        let table = Table::with_head(head, 1, vec![row("one"), row("other")]);
        let drawn = columns(&table, |place| html! { " " (place) }).into_string();
        let style = r#"style="--h1:'cell';--h2:'arm\'s \\ &quot;ratio&quot; &lt;/table&gt;'""#;
        assert!(drawn.contains(&format!(r#"<table class="columns text-1" {style}>"#)), "{drawn}");
        let rules = rules();
        assert!(rules.contains(".text-2 td:nth-child(n+3){white-space:nowrap}"), "a number is not broken");
        assert!(!rules.contains("th,td):nth-child(n+3){text-align:right;white-space"), "a title may be");
        assert!(drawn.contains("<tr><td>one 0</td><td>0.8</td></tr><tr><td>other 1</td>"), "{drawn}");
    }

    #[test]
    fn on_a_narrow_page_columns_with_nothing_in_them_are_left_out() {
        let owned = |words: [&str; 4]| words.map(str::to_owned).to_vec();
        let head = owned(["call", "each", "asleep", "errors"]);
        let rows = [owned(["–", "1 ns", "–", "–"]), owned(["–", "–", "–", "0.1 %"])].to_vec();
        let of = |rows: Vec<Vec<String>>| {
            let table = Table::with_head(head.clone(), 1, rows);
            columns(&table, |_| Markup::default()).into_string()
        };
        let drawn = of(rows);
        assert!(drawn.contains(r#"<table class="columns text-1 empty-3" "#), "{drawn}");
        assert!(drawn.contains("<td>1 ns</td><td>–</td>"), "a wide page has them all: {drawn}");
        assert!(of(Vec::new()).contains(r#"class="columns text-1" "#), "there is nothing to leave out");
        let rules = rules();
        let (_, narrow) = rules.split_once("@media (max-width:700px)").expect("it has rules");
        assert!(narrow.contains(".empty-3 td:nth-child(3){display:none!important}"), "{narrow}");
        assert!(!narrow.contains(".empty-1 "), "a row without a name is nothing");
    }
}
