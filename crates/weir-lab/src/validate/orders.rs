//! What a study of the order gateway may ask.

use weir_record::spec::{CellSpec, GatewaySubject, OrdersCell, StudySpec, Subject};

use super::{SpecError, arguments, driver};

/// Ways of handing over that `--handoff` takes.
pub const HANDOFFS: [&str; 7] = ["owner", "naive", "edge", "armed", "mesh", "mesh-spin", "msgring"];

/// Routes that `--route` takes.
pub const ROUTES: [&str; 3] = ["own", "other", "modulo"];

/// Levels that `--journal` takes.
const JOURNALS: [&str; 3] = ["none", "os", "disk"];

/// Ways of accepting that `--accept` takes.
const ACCEPTS: [&str; 3] = ["acceptor", "reuseport", "exclusive"];

/// Most sessions; the built-in accounts are named with five digits.
const SESSIONS_MAX: u32 = 10_000;

fn one_of(key: &str, value: &str, known: &[&str]) -> Result<(), SpecError> {
    if known.contains(&value) {
        return Ok(());
    }
    Err(SpecError::new(key, format!("{value:?} is not known; use one of {}", known.join(", "))))
}

/// A study has one protocol.
pub(super) fn protocol(spec: &StudySpec) -> Result<(), SpecError> {
    if spec.is_orders() && spec.cells.iter().any(|cell| cell.orders.is_none()) {
        let message = "some cells have orders and some have none; a study has one protocol".to_owned();
        return Err(SpecError::new("protocol", message));
    }
    Ok(())
}

/// Gateways belong to orders, and nothing else does. A way of handing over must be there on every driver it meets.
pub(super) fn arms(spec: &StudySpec) -> Result<(), SpecError> {
    for arm in &spec.arms {
        let Subject::Gateway(subject) = &arm.subject else {
            if spec.is_orders() {
                let message = format!("{} is no gateway, and the study is of orders", arm.name);
                return Err(SpecError::new("arm", message));
            }
            continue;
        };
        if !spec.is_orders() {
            let message = format!("{} is a gateway, and no cell has orders", arm.name);
            return Err(SpecError::new("arm", message));
        }
        one_of("arm.handoff", &subject.handoff, &HANDOFFS)?;
        one_of("arm.route", &subject.route, &ROUTES)?;
        arguments(&subject.arguments)?;
        for cell in spec.cells.iter().filter(|cell| cell.has_arm(&arm.name)) {
            on_driver(&arm.name, subject, cell)?;
        }
    }
    Ok(())
}

fn on_driver(arm: &str, subject: &GatewaySubject, cell: &CellSpec) -> Result<(), SpecError> {
    let Some(orders) = &cell.orders else { return Ok(()) };
    let own = subject.driver.as_deref().unwrap_or(&orders.driver);
    driver(own)?;
    if own == "blocking" {
        let message =
            format!("{arm} in {}: a gateway needs many operations at once; blocking has one", cell.id);
        return Err(SpecError::new("arm.driver", message));
    }
    if subject.handoff == "msgring" && own != "uring" {
        let message = format!("{arm} in {}: a message from ring to ring needs io_uring, not {own}", cell.id);
        return Err(SpecError::new("arm.handoff", message));
    }
    Ok(())
}

pub(super) fn cell(cell: &CellSpec, orders: &OrdersCell) -> Result<(), SpecError> {
    one_of("journal", &orders.journal, &JOURNALS)?;
    one_of("accept", &orders.accept, &ACCEPTS)?;
    if cell.connections > SESSIONS_MAX {
        let message =
            format!("{} has {} sessions; at most {SESSIONS_MAX} are allowed", cell.id, cell.connections);
        return Err(SpecError::new("connections", message));
    }
    if orders.in_flight_total == Some(0) {
        return Err(SpecError::new("depth", format!("{} has nothing in flight", cell.id)));
    }
    Ok(())
}

/// `closed-uring-w2`; what is not usual follows.
pub(super) fn cell_id(cell: &CellSpec, orders: &OrdersCell) -> String {
    let mut id = format!("{}-{}-w{}", orders.load, orders.driver, cell.workers);
    if orders.journal != "none" {
        id.push_str(&format!("-{}", orders.journal));
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        file::Surroundings,
        gateway::{self, Plan},
        quick::Availability,
        validate,
    };

    fn study() -> StudySpec {
        let surroundings = Surroundings { seed: 1, server_cpus: Vec::new(), load_cpus: Vec::new() };
        gateway::gateway(&surroundings, None, &Availability::Runs, Plan::Scaled).0
    }

    fn refusal(change: impl FnOnce(&mut StudySpec)) -> String {
        let mut spec = study();
        change(&mut spec);
        validate::study(&spec).expect_err("it is refused").to_string()
    }

    fn first_arm(spec: &mut StudySpec) -> &mut GatewaySubject {
        match &mut spec.arms[1].subject {
            Subject::Gateway(subject) => subject,
            other => panic!("{other:?}"),
        }
    }

    type Change = fn(&mut StudySpec);

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_key() {
        let cases: [(Change, &str); 8] = [
            (|spec| first_arm(spec).handoff = "pigeon".to_owned(), "arm.handoff: "),
            (|spec| first_arm(spec).route = "scenic".to_owned(), "arm.route: "),
            (|spec| first_arm(spec).driver = Some("blocking".to_owned()), "arm.driver: "),
            (|spec| first_arm(spec).driver = Some("auto".to_owned()), "arm.driver: "),
            (|spec| first_arm(spec).handoff = "msgring".to_owned(), "arm.handoff: naive in closed-epoll-w2"),
            (|spec| first_arm(spec).arguments = vec!["--listen".to_owned()], "arm.arguments: "),
            (|spec| spec.cells[0].orders = None, "protocol: "),
            (
                |spec| spec.arms[1].subject = Subject::Command { argv: vec!["{port}".to_owned()] },
                "arm: naive",
            ),
        ];
        for (change, key) in cases {
            let said = refusal(change);
            assert!(said.starts_with(key), "{key}: {said}");
        }
    }

    #[test]
    fn a_gateway_is_no_arm_of_another_study() {
        let mut spec = weir_judge::sample::study(&["epoll", "uring"], 6, 1);
        spec.arms[1].subject = Subject::Gateway(GatewaySubject::default());
        let said = validate::study(&spec).expect_err("it is refused").to_string();
        assert!(said.contains("no cell has orders"), "{said}");
    }
}
