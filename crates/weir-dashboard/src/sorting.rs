//! Tables in the order of a column that the reader chose: the value in a query, the order of rows, and the titles that
//! choose. Pure.

use std::cmp::Ordering;

use maud::{Markup, html};

/// What a row is ordered by.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    Number(f64),
    Text(String),
}

impl Key {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    pub(crate) fn of(is_descending: bool) -> Self {
        if is_descending { Self::Descending } else { Self::Ascending }
    }
}

/// Rows in the order of their keys. Equal ones keep their order; absent keys are last, in either direction.
pub(crate) fn sorted<T>(rows: Vec<T>, direction: Direction, key: impl Fn(&T) -> Option<Key>) -> Vec<T> {
    let mut keyed: Vec<(Option<Key>, T)> = rows.into_iter().map(|row| (key(&row), row)).collect();
    keyed.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(one), Some(other)) if direction == Direction::Descending => other.order(one),
        (Some(one), Some(other)) => one.order(other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    });
    keyed.into_iter().map(|(_, row)| row).collect()
}

/// A value of a query: the column's key, and whether the reader reversed its usual direction (`-KEY`).
pub(crate) fn of_value(value: &str) -> (&str, bool) {
    value.strip_prefix('-').map_or((value, false), |key| (key, true))
}

/// The title of a column, which sorts the table by it. The column of the current order has a direction.
pub(crate) fn head(title: &str, href: &str, own: Option<Direction>) -> Markup {
    let (mark, direction) = match own {
        Some(Direction::Descending) => (" ↓", Some("descending")),
        Some(Direction::Ascending) => (" ↑", Some("ascending")),
        None => ("", None),
    };
    html! {
        th scope="col" aria-sort=[direction] {
            a href=(href) { (title) @if own.is_some() { span aria-hidden="true" { (mark) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_in_either_direction_and_those_without_a_key_are_last() {
        let rows = || vec![("b", Some(2.0)), ("none", None), ("a", Some(1.0)), ("c", Some(2.0))];
        let names = |direction| -> Vec<&str> {
            let all = sorted(rows(), direction, |(_, value)| value.map(Key::Number));
            all.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(Direction::Ascending), ["a", "b", "c", "none"]);
        assert_eq!(names(Direction::Descending), ["b", "c", "a", "none"], "equal ones keep their order");
        assert_eq!((of_value("-pid"), of_value("pid")), (("pid", true), ("pid", false)));
    }
}
