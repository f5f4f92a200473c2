//! `weir serve exchange`.

use std::{fs, sync::Arc};

use anyhow::{Context, Result};
use weir_record::engine::ServerStats;
use weir_servers::{
    exchange::{self, ExchangeConfig},
    orders::{OrdersConfig, OrdersServer, accounts_named, demo_accounts},
};

use super::{arguments::ServeExchange, event_log::EventLog, journal};
use crate::{
    exit::{Exit, UsageError},
    output,
    serve::{self, Running},
};

/// Where an exchange listens without `--listen`.
const LISTEN_DEFAULT: &str = "127.0.0.1:9101";

/// Accounts for the workers of a demonstration gateway.
const GATEWAY_ACCOUNTS: u32 = 256;

pub(crate) fn run(arguments: &ServeExchange) -> Result<Exit> {
    let file = config(arguments)?;
    let listen = arguments.listen.as_deref().or(file.listen.as_deref()).unwrap_or(LISTEN_DEFAULT);
    let mut prepared = serve::prepare(&arguments.shared, listen)?;
    prepared.refuse_insecure(arguments.insecure)?;
    let orders = OrdersConfig {
        session: file.session.unwrap_or_else(|| OrdersConfig::new(Vec::new()).session),
        journal: journal::place(&arguments.journal, file.journal)?,
        ..OrdersConfig::new(file.accounts)
    };
    if let Some((directory, level)) = &orders.journal {
        weir_servers::journal::warning(directory, *level).iter().for_each(|warning| output::tell(warning));
    }
    let mode = match &arguments.mode {
        Some(text) => text.parse().map_err(|error| UsageError(format!("--mode: {error}")))?,
        None => file.mode.unwrap_or_default(),
    };
    let mut recovered = exchange::recover(&orders, mode).context("the journal cannot be used")?;
    if arguments.new_session {
        recovered.end_session();
    }
    recovered.sessions().torn().iter().for_each(|torn| output::tell(torn));
    let one_sided = recovered.one_sided_trades();
    if one_sided > 0 {
        output::tell(&format!(
            "a crash has left one side of {one_sided} trades: they are broken, and the account of that side gets a message"
        ));
    }
    let log = EventLog::open(&arguments.log)?;
    if log.reopen_at_signals()? {
        prepared.reopens_logs();
    }
    prepared.run_server(|config| {
        let server = exchange::start_recovered(config, orders, recovered, mode)?;
        Ok(running(server, log))
    })?;
    Ok(Exit::Ok)
}

fn running(server: OrdersServer, log: EventLog) -> Running {
    let control = server.control();
    super::tell_events(&control, Vec::new(), log);
    let node = Arc::new(move |stats: &mut ServerStats| stats.node = Some(control.node_stats()));
    Running::orders(server, node, None, || {})
}

fn config(arguments: &ServeExchange) -> Result<ExchangeConfig> {
    let Some(path) = &arguments.config else {
        let mut accounts = demo_accounts(arguments.demo.unwrap_or(1));
        accounts.extend(accounts_named('G', GATEWAY_ACCOUNTS));
        return Ok(ExchangeConfig { accounts, ..ExchangeConfig::default() });
    };
    let text = fs::read_to_string(path)
        .map_err(|error| UsageError(format!("--config {} cannot be read: {error}", path.display())))?;
    exchange::parse(path, &text).map_err(|errors| {
        let errors: Vec<String> = errors.all().iter().map(ToString::to_string).collect();
        super::gateway::told(&errors).into()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{
        args::{Arguments, Command},
        protocol::ServeProtocol,
    };

    #[test]
    fn a_demonstration_has_accounts_for_clients_and_for_gateways() {
        let arguments = Arguments::try_parse_from(["weir", "serve", "exchange", "--demo", "3"]);
        let Ok(Arguments { command: Command::Serve(ServeProtocol::Exchange(exchange)) }) = arguments else {
            panic!("it is a command")
        };
        let names: Vec<String> = config(&exchange)
            .expect("it is right")
            .accounts
            .iter()
            .map(|account| account.name.to_string())
            .collect();
        assert_eq!(names[..4], ["C00001", "C00002", "C00003", "G00001"]);
        assert_eq!(names.last().map(String::as_str), Some("G00256"));
    }
}
