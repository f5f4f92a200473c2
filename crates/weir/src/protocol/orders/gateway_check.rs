//! `weir serve gateway --check`: everything a start would read, examined without a start. It binds no address and
//! changes no file.

use std::{
    io,
    os::unix::{fs::FileTypeExt, net::UnixStream},
    path::Path,
};

use anyhow::Result;
use weir_servers::{
    gateway::{DayConfig, GatewayConfig, Listeners, VenueConfig},
    journal::{FolderState, Level, folder_state},
};

use super::{
    arguments::ServeGateway,
    gateway::{check_workers, listen, read, refuse_insecure_copy, told},
};
use crate::{
    exit::{EnvironmentError, Exit},
    output, serve,
};

/// Most venues that are listed.
const VENUES_LISTED_MAX: usize = 20;

pub(super) fn run(arguments: &ServeGateway) -> Result<Exit> {
    let (config, listeners) = match read(arguments) {
        Ok(read) => read,
        Err(mut errors) => {
            // The flags of all servers can be checked without the file.
            let flags = serve::examine(&arguments.shared, listen(arguments, &Listeners::default()));
            errors.extend(flags.err().map(|error| error.to_string()));
            return Err(told(&errors).into());
        }
    };
    let clients = listen(arguments, &listeners);
    let prepared = serve::examine(&arguments.shared, clients)?;
    let wrong = [
        prepared.refuse_insecure(arguments.insecure),
        refuse_insecure_copy(&config, arguments.insecure),
        check_workers(&config, prepared.workers()),
    ];
    let wrong: Vec<String> =
        wrong.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    if !wrong.is_empty() {
        return Err(told(&wrong).into());
    }
    let mut lines = contents(&config);
    lines.push(format!("clients: {clients}, workers: {}, driver {}", prepared.workers(), prepared.driver()));
    let mut troubles = Vec::new();
    let mut note = |found: Result<String, String>| match found {
        Ok(line) => lines.push(line),
        Err(trouble) => troubles.push(trouble),
    };
    note(match &config.journal {
        None => Ok("journal: none; after a restart the gateway knows no order".into()),
        Some((directory, level)) => journal("journal", (directory, *level), folder_state(directory)),
    });
    if let (Some(copy), Some((directory, level))) = (&config.drop_copy, &config.journal) {
        let folder = copy.folder(directory);
        note(Ok(format!("drop copy: {}, {} firms", copy.listen, copy.firms.len())));
        note(journal("journal of the drop copy", (&folder, *level), folder_state(&folder)));
    }
    note(match arguments.control.as_ref().or(listeners.control.as_ref()) {
        None => Ok("control socket: none; `weir ctl` cannot be used".into()),
        Some(path) => control(path),
    });
    let warning = config.journal.as_ref();
    let warning = warning.and_then(|(directory, level)| weir_servers::journal::warning(directory, *level));
    lines.extend(warning);
    output::print(&lines.join("\n"))?;
    if troubles.is_empty() {
        output::print("the configuration is right")?;
        return Ok(Exit::Ok);
    }
    Err(EnvironmentError(troubles.join("; ")).into())
}

/// What the file says, in numbers.
fn contents(config: &GatewayConfig) -> Vec<String> {
    let own_limits = config.account_limits.iter().flatten().count();
    let mut lines = vec![format!(
        "accounts: {}, {own_limits} with separate limits; first session {}",
        config.accounts.len(),
        config.session
    )];
    lines.extend(config.day.as_ref().map(day));
    lines.extend(config.venues.iter().take(VENUES_LISTED_MAX).map(|venue| self::venue(config, venue)));
    if config.venues.len() > VENUES_LISTED_MAX {
        lines.push(format!("and {} more venues", config.venues.len() - VENUES_LISTED_MAX));
    }
    if config.default_venue.is_none() {
        lines.push("orders for other symbols are refused: there is no default_venue".into());
    }
    lines
}

/// The sessions of the trading day.
fn day(day: &DayConfig) -> String {
    let schedule = &day.schedule;
    if schedule.is_empty() {
        return "day: without sessions; `weir ctl start-of-day` and `end-of-day` begin and end it".into();
    }
    let names: Vec<&str> = schedule.sessions().iter().map(|session| session.name.as_str()).collect();
    format!("day: sessions {}; {} holidays", names.join(", "), schedule.holidays())
}

fn venue(config: &GatewayConfig, venue: &VenueConfig) -> String {
    let place = config.venues.iter().position(|other| other.name == venue.name);
    let symbols = config.symbols.iter().filter(|(_, venue)| Some(*venue) == place).count();
    let others = if config.default_venue == place { " and all others" } else { "" };
    format!("venue {}: {}, {symbols} symbols{others}", venue.name, venue.address)
}

/// The folder of the journals. One that a gateway writes is no error: it is the one that would be reloaded.
fn journal(
    what: &str,
    (directory, level): (&Path, Level),
    state: io::Result<FolderState>,
) -> Result<String, String> {
    let shown = directory.display();
    let state = state.map_err(|error| {
        format!("{what} {shown}: {error}; the gateway has to read and write this folder, or create it")
    })?;
    let found = match (state.is_there, state.workers.len(), state.written.as_slice()) {
        (false, ..) => "a start creates it".to_owned(),
        (true, 0, _) => "it has no journal yet".to_owned(),
        (true, journals, []) => format!("{journals} journals, no gateway writes them"),
        (true, _, written) => {
            let workers: Vec<String> = written.iter().map(ToString::to_string).collect();
            format!("a running gateway writes it (workers {}): a second start is refused", workers.join(", "))
        }
    };
    Ok(format!("{what}: {shown}, level {level}; {found}"))
}

fn control(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(format!("control socket {shown}: {} is no folder; create it", folder.display()));
    }
    let found = match path.metadata() {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(format!("control socket {shown}: another file has this name; choose another path"));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => "a running gateway answers there",
        Ok(_) => "a start replaces the socket of a gateway that has ended",
        Err(_) => "a start creates it",
    };
    Ok(format!("control socket: {shown}; {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_the_folder_is_in_words() {
        let state = |is_there, workers: &[u16], written: &[u16]| {
            Ok(FolderState { is_there, workers: workers.to_vec(), written: written.to_vec() })
        };
        let line = |state| journal("journal", (Path::new("j"), Level::Os), state).expect("it can be used");
        assert_eq!(line(state(false, &[], &[])), "journal: j, level os; a start creates it");
        assert_eq!(line(state(true, &[], &[])), "journal: j, level os; it has no journal yet");
        assert_eq!(
            line(state(true, &[0, 1], &[])),
            "journal: j, level os; 2 journals, no gateway writes them"
        );
        let running =
            "journal: j, level os; a running gateway writes it (workers 0, 1): a second start is refused";
        assert_eq!(line(state(true, &[0, 1], &[0, 1])), running);
        let denied =
            journal("journal", (Path::new("j"), Level::Os), Err(io::ErrorKind::PermissionDenied.into()));
        assert!(
            denied.expect_err("it cannot").starts_with("journal j: permission denied; the gateway has to")
        );
    }

    #[test]
    fn the_control_socket_needs_a_folder_and_no_other_file() {
        let folder = std::env::temp_dir().join(format!("weir-check-{}", std::process::id()));
        let path = folder.join("gateway.sock");
        assert!(control(&path).is_err_and(|trouble| trouble.contains("is no folder; create it")));
        std::fs::create_dir(&folder).expect("it is new");
        assert!(control(&path).is_ok_and(|line| line.ends_with("; a start creates it")));
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("the path is free");
        assert!(control(&path).is_ok_and(|line| line.ends_with("a running gateway answers there")));
        drop(listener);
        assert!(control(&path).is_ok_and(|line| line.ends_with("of a gateway that has ended")));
        std::fs::remove_file(&path).expect("it is ours");
        std::fs::write(&path, "text").expect("the folder is ours");
        assert!(control(&path).is_err_and(|trouble| trouble.contains("another file has this name")));
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
