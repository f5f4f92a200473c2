//! Renamed commands: a user of the old name gets a message with the new one.

use weir_report::Language;

/// The old words, and a sentence with the command's present name.
pub(crate) const ALL: [([&str; 2], [&str; 3]); 1] = [(
    ["study", "compare"],
    [
        "`weir study compare` is called `weir study diff` now: weir study diff A B",
        "`weir study compare`의 이름은 이제 `weir study diff`입니다: weir study diff A B",
        "`weir study compare` 现名为 `weir study diff`：weir study diff A B",
    ],
)];

/// The message with the present name, if the words begin with an old one.
pub(crate) fn now<'w>(words: impl IntoIterator<Item = &'w str>, language: Language) -> Option<&'static str> {
    let first: Vec<&str> = words.into_iter().skip_while(|word| *word == "help").take(2).collect();
    ALL.iter().find(|(old, _)| first == old).map(|(_, texts)| language.choose(*texts))
}
