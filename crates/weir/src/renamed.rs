//! Commands that had another name: who types the old one is told the new one.

use weir_report::Language;

/// The words that led there, and what is said of the name that the command has now.
pub(crate) const ALL: [([&str; 2], [&str; 3]); 1] = [(
    ["study", "compare"],
    [
        "`weir study compare` is called `weir study diff` now: weir study diff A B",
        "`weir study compare`의 이름은 이제 `weir study diff`입니다: weir study diff A B",
        "`weir study compare` 现名为 `weir study diff`：weir study diff A B",
    ],
)];

/// The name that a command has now, where the words begin with its old one.
pub(crate) fn now<'w>(words: impl IntoIterator<Item = &'w str>, language: Language) -> Option<&'static str> {
    let first: Vec<&str> = words.into_iter().skip_while(|word| *word == "help").take(2).collect();
    ALL.iter().find(|(old, _)| first == old).map(|(_, texts)| language.choose(*texts))
}
