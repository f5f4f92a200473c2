//! The trading day of a gateway from outside: it begins by the clock, ends by a command, and the same process goes on
//! with the next session.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;
use weir_proto::ouch::reject_reason;
use weir_servers::orders::demo_accounts;

use super::{
    harness::{PATIENCE, Running, expect_refusal, shown, socket_folder, until, weir},
    order_client::Client,
};

/// A distance from UTC by which it is about noon: no day begins or ends during a test.
fn offset_at_noon() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let hours = 12 - (now.as_secs() / 3600 % 24) as i64;
    format!("{}{:02}:00", if hours < 0 { '-' } else { '+' }, hours.abs())
}

/// A gateway's file with one account and a session that is open all day.
fn file(upstream: &str, place: &str) -> String {
    let [account] = &demo_accounts(1)[..] else { panic!("one account") };
    format!(
        "numbers = \"restart\"\n[day]\nutc_offset = \"{}\"\nholidays = \"{place}/holidays\"\n\
         weekdays = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\", \"sun\"]\n\
         [[day.session]]\nname = \"all\"\nstart = \"00:00\"\nend = \"24:00\"\n\
         [listen]\norders = \"127.0.0.1:0\"\ncontrol = \"{place}/control\"\n\
         [journal]\ndirectory = \"{place}/journal\"\nlevel = \"os\"\n\
         [[venue]]\nname = \"X\"\naddress = \"{upstream}\"\nusername_prefix = \"G\"\npassword = \"DEMO\"\n\
         [[account]]\nname = \"{}\"\npassword_hash = \"{}\"\n",
        offset_at_noon(),
        account.name,
        account.password_hash
    )
}

fn listening(process: &Running) -> String {
    match process.next_line().as_deref().and_then(|line| line.strip_prefix("listening on ")) {
        Some(address) => address.to_owned(),
        None => panic!("it does not start: {}", process.rest_of_errors()),
    }
}

#[test]
fn a_day_ends_by_a_command_and_the_same_process_goes_on_with_the_next_session_and_number_1() {
    let folder = socket_folder("order-day");
    let (path, place) = (folder.join("gateway.toml"), shown(&folder).to_owned());
    let exchange = ["serve", "exchange", "--demo", "1", "--listen", "127.0.0.1:0", "--mode", "match"];
    let exchange = Running::weir(&exchange);
    let upstream = listening(&exchange);
    fs::write(folder.join("holidays"), "2026-12-25 # Christmas\n2026-13-01\n")
        .expect("a file can be written");
    fs::write(&path, file(&upstream, &place)).expect("a file can be written");
    let check = || weir(&["serve", "gateway", "--config", shown(&path), "--check"]);
    expect_refusal(&check(), 2, &["gateway.toml:4: holidays: ", "holidays:2: \"2026-13-01\": write a date"]);
    fs::write(folder.join("holidays"), "1999-12-25 # Christmas\n").expect("a file can be written");
    let said = check();
    assert!(said.stdout.contains("day: sessions all; 1 holidays"), "{} {}", said.stdout, said.stderr);

    let control = folder.join("control");
    let ctl = |task: &str| weir(&["ctl", "--socket", shown(&control), task]);
    let is_open = || ctl("sessions").stdout.contains("day: session all of ");
    let start = || Running::weir(&["serve", "gateway", "--config", shown(&path), "--workers", "1"]);
    let mut gateway = start();
    let mut address = listening(&gateway);
    until("the session is open", is_open);
    let mut client = Client::login(&address, "C00001");
    client.send(1..=3);
    client.hear_until("they are taken", |client| client.numbers(b'A') == [1, 2, 3]);

    let said = ctl("end-of-day");
    assert!(said.stdout.starts_with("day: closed; the day "), "{} {}", said.stdout, said.stderr);
    client.hear_until("they are cancelled", |client| client.numbers(b'C').len() == 3);
    address = listening(&gateway);
    assert!(ctl("sessions").stdout.contains("session WEIRGW0002\nday: closed; the day "));
    let mut client = Client::login(&address, "C00001");
    client.send(1..=1);
    client.hear_until("it is refused", |client| client.reason_of(1) == Some(reject_reason::HALTED));
    assert!(ctl("start-of-day").stdout.starts_with("day: session all of "));
    client.send(2..=2);
    client.hear_until("it is taken", |client| client.numbers(b'A') == [2]);

    // A crash in the middle of a session: the next start goes on with it, and begins it not again.
    gateway.signal(Signal::KILL);
    assert_eq!(gateway.wait(PATIENCE), -9);
    gateway = start();
    address = listening(&gateway);
    until("the session is open", is_open);
    let mut client = Client::login(&address, "C00001");
    client.send(3..=3);
    client.hear_until("it is taken", |client| client.numbers(b'A') == [2, 3]);
    assert_eq!(client.numbers(b'C').len(), 0, "nothing has ended");
    drop(client);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(PATIENCE), 0);
    let printed = weir(&["journal", "print", shown(&folder.join("journal")), "--operators"]).stdout;
    let steps = ["phase=open", "phase=over", "command=end_of_day", "phase=open", "command=start_of_day"];
    let mut rest = printed.as_str();
    for step in steps {
        rest =
            rest.split_once(step).unwrap_or_else(|| panic!("{step} is not behind the others: {printed}")).1;
    }
}
