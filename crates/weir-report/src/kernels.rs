//! Arms that run as an older kernel would let them: what they leave unused, and what that cannot show.

use weir_record::{
    kernel,
    spec::{ArmSpec, Subject},
};

use crate::{
    findings,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// The section: a row for each such arm.
pub(crate) fn section(view: &View<'_>) -> Content {
    let row = |arm: &ArmSpec| {
        let Subject::Weir { driver, .. } = &arm.subject else { return None };
        let version = arm.subject.as_on_kernel()?;
        let masked = kernel::lacking(version, driver)
            .map(|row| format!("{} ({})", findings::feature(view.language, row.name), row.since));
        Some(vec![
            arm.name.clone(),
            version.to_string(),
            masked.collect::<Vec<_>>().join(view.language.list()),
        ])
    };
    let rows: Vec<Vec<String>> = view.result.spec.arms.iter().filter_map(row).collect();
    Content::unless(rows.is_empty(), || {
        let head = [Word::Arm, Word::KernelsVersion, Word::KernelsMasked];
        Section::of_table(Word::KernelsTitle, Word::KernelsHelp, Table::new(view, &head, &[], rows))
    })
}
