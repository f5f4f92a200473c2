//! Claims at one rate that every arm is offered, in place of claims about closed loops.

use weir_judge::rungs;
use weir_record::spec::{CellRole, CellSpec, LoadMode};
use weir_stats::decide::UNITS_MIN;

use super::cells::{Draft, File, RoundPlan, Settings, claims_closed};
use crate::protocol;

/// The rungs of a primary comparison, the highest first, and (next constant) the one rate of every other claim:
/// shares of the capacity of the slowest arm.
const RUNGS: [f64; 3] = [0.75, 0.5, 0.25];
const CONFIRMATORY_SHARE: f64 = 0.5;

/// Converts a claim about a closed loop to a claim at a rate that all arms are offered: the primary one on rungs, any
/// other at one rate. The closed loop stays beside it and shows the capacity of the arms.
pub(super) fn of(claim: Draft, file: &File) -> Vec<Draft> {
    if !claims_closed(&claim) {
        return vec![claim];
    }
    let is_primary = claim.spec.role == CellRole::Primary;
    let shares: &[f64] = if is_primary { &RUNGS } else { &[CONFIRMATORY_SHARE] };
    // Suffix of cells that differ in how their arms take turns.
    let apart = claim.spec.id.strip_prefix(&protocol::cell_id(&claim.spec)).unwrap_or_default().to_owned();
    let at = |(place, share): (usize, &f64)| {
        let decides = place == 0;
        let of_rung = |all: u32| if is_primary { rounds_of_rung(all, decides) } else { all };
        let mut spec = CellSpec {
            role: if decides { claim.spec.role } else { CellRole::Exploratory },
            load: LoadMode::OpenShare { share: *share, poisson: true },
            blocks: of_rung(claim.spec.blocks),
            is_rung: is_primary,
            ..claim.spec.clone()
        };
        spec.id = format!("{}{apart}", protocol::cell_id(&spec));
        Draft {
            spec,
            shape: claim.shape.clone(),
            arms: claim.arms.clone(),
            neighbours: claim.neighbours.clone(),
            round_plan: RoundPlan {
                rounds: of_rung(claim.round_plan.rounds),
                evidence: claim.round_plan.evidence.filter(|_| decides),
                ..claim.round_plan
            },
            is_combined: claim.is_combined,
        }
    };
    let mut drafts: Vec<Draft> = shares.iter().enumerate().map(at).collect();
    let own = Settings::default();
    let looked_at = file.round_plan(CellRole::Exploratory, LoadMode::Closed, &own, None);
    let blocks = file.blocks(CellRole::Exploratory, &own).min(claim.spec.blocks);
    drafts.push(Draft {
        spec: CellSpec { role: CellRole::Exploratory, blocks, ..claim.spec },
        round_plan: RoundPlan {
            rounds: looked_at.rounds.min(claim.round_plan.rounds),
            evidence: looked_at.evidence,
            ..claim.round_plan
        },
        ..claim
    });
    drafts
}

/// Merges a cell that is written out at the rate of a claim with the claim, and keeps the larger number of rounds.
pub(super) fn merged(cells: Vec<Draft>) -> Vec<Draft> {
    let is_claimed = |draft: &Draft| draft.spec.is_rung || draft.spec.role != CellRole::Exploratory;
    let (mut claimed, others): (Vec<Draft>, Vec<Draft>) = cells.into_iter().partition(is_claimed);
    let mut left = Vec::new();
    for draft in others {
        match claimed.iter_mut().find(|claim| claim.spec.id == draft.spec.id) {
            Some(claim) => {
                claim.round_plan.rounds = claim.round_plan.rounds.max(draft.round_plan.rounds);
                claim.spec.blocks = claim.spec.blocks.max(draft.spec.blocks);
            }
            None => left.push(draft),
        }
    }
    claimed.extend(left);
    claimed
}

/// Rounds of a rung, out of all rounds of its claim. If there are few, the deciding rung has as many as a verdict
/// needs.
fn rounds_of_rung(all: u32, decides: bool) -> u32 {
    let curve = ((f64::from(all) * rungs::CURVE_SHARE) as u32).max(2);
    if decides { all.saturating_sub(2 * curve).max(all.min(UNITS_MIN as u32)) } else { curve }
}
