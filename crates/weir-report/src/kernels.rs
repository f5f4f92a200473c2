//! Arms that emulate an older kernel: the features they leave unused, and the limits of that emulation.

use weir_record::{
    kernel::{self, KernelFeature},
    machine::GRANTED_LIMIT,
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
            .filter(|row| row.feature != KernelFeature::MultishotReceive || receives_many_times(view, arm))
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

/// Whether the arm would use multishot receive if its emulated version permitted it: it may disable that itself, and
/// by default it does not use it on every kernel.
fn receives_many_times(view: &View<'_>, arm: &ArmSpec) -> bool {
    let Subject::Weir { options, .. } = &arm.subject else { return false };
    match options.get("receive").map(String::as_str) {
        Some("multishot" | "bundle") => true,
        Some("single") => false,
        _ => {
            let granted = view.result.fingerprint.limits.get(GRANTED_LIMIT);
            granted.is_none_or(|names| names.split(' ').any(|name| name == "multishot-receive"))
        }
    }
}
