//! Pictures of a cluster, on terminals of several sizes.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use gristmill_wire::{
    BytesStatus, ClusterStatus, HandedBack, KernelStatus, NodeLoad, NodeStatus, RequestState, RequestStatus,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::picture::Sort;
use super::rows::clean;
use super::screen::{KeyOutcome, Screen};

const GIB: u64 = 1 << 30;

fn node(target: u32, up_seconds: f64) -> NodeStatus {
    let busy = f64::from(target) / 10.0;
    NodeStatus {
        target,
        address: format!("127.0.0.1:{}", 7440 + target),
        load: Some(NodeLoad {
            target,
            cores: 2.0,
            active: 2,
            running: 1,
            queued: 0.3,
            cpu: 0.5 + busy,
            others: 0.25,
            memory: Some((GIB, 4 * GIB)),
            io: Some(0.01),
            ..NodeLoad::default()
        }),
        silent_seconds: Some(1.0),
        up_seconds,
        kernels: vec![KernelStatus {
            kernel: "sum".into(),
            rate: 2.0 * GIB as f64,
            measured: true,
            ended: 3,
            handed_back: 1,
            folded: 3 * GIB,
        }],
        requests: vec![RequestStatus {
            number: 17,
            kernel: "grep".into(),
            state: RequestState::Running,
            bytes: GIB,
            folded: GIB / 4,
            principal: "alice".into(),
            asker: Some("4f1c".into()),
            age_seconds: 3.25,
        }],
        bytes: BytesStatus { folded: (up_seconds * GIB as f64) as u64, sent: (up_seconds * 1024.0) as u64 },
        ..NodeStatus::default()
    }
}

fn cluster(up_seconds: f64) -> ClusterStatus {
    let mut nodes = vec![node(0, up_seconds), node(1, up_seconds), node(2, up_seconds)];
    nodes[1].handed_back.push(HandedBack {
        number: 4,
        kernel: "var".into(),
        principal: "bob".into(),
        asker: Some("\u{1b}[31m<b>\u{202e}".into()),
        bytes: GIB / 2,
        why: "the node has 9 active requests".into(),
        ago_seconds: 5.0,
    });
    nodes.push(NodeStatus {
        target: 3,
        address: "127.0.0.1:7443".into(),
        error: Some("no answer in 1 s".into()),
        silent_seconds: Some(12.0),
        ..NodeStatus::default()
    });
    ClusterStatus { at: 1_800_000_000.0 + up_seconds, nodes }
}

/// A screen with two answers, so that there are rates.
fn screen() -> Screen {
    let mut screen = Screen::new("127.0.0.1:7440", cluster(10.0));
    screen.update(cluster(12.0));
    screen
}

fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect()
}

fn press(screen: &mut Screen, code: KeyCode) -> KeyOutcome {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn a_wide_terminal_shows_everything() {
    let lines = drawn(&mut screen(), 160, 40);
    let text = lines.join("\n");
    assert!(
        lines[0].starts_with("gristmill  127.0.0.1:7440  3 of 4 nodes answer, 6 active requests  "),
        "{text}"
    );
    assert!(lines[1].starts_with("not moved    3.00 GiB/s  36.00 GiB in all"), "{text}");
    assert!(lines[2].starts_with("moved        3.00 KiB/s  36.00 KiB in all"), "{text}");
    for words in [
        "   0  127.0.0.1:7440  up 12 s    ██▒▒····  50%    2.0  0.3 s    1     1  75%   1%  1.00 GiB/s  1.00 KiB/s",
        "   3  127.0.0.1:7443  no answer  -",
        "  node 3: last heard of 12 s ago; no answer in 1 s",
        "1.4      var     at the asker, from node 1     -  512.00 MiB  bob    \u{fffd}[31m<b>\u{fffd}  5.0 s ago",
        "and 3 more",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let request = lines.iter().find(|line| line.starts_with("2.17 ")).unwrap();
    let words: Vec<&str> = request.split_whitespace().collect();
    assert_eq!(words.join(" "), "2.17 grep node 2, running 25% 1.00 GiB alice 4f1c 3.2 s");
    let kernel = lines.iter().find(|line| line.starts_with("sum ")).unwrap();
    assert_eq!(kernel.split_whitespace().collect::<Vec<_>>().join(" "), "sum 9 3 9.00 GiB 2.00 GiB/s");
    // Three nodes had a part of each of three requests.
    assert!(
        lines.iter().any(|line| line.starts_with("KERNEL") && line.contains("  PARTS ENDED  ")),
        "{text}"
    );
    assert!(lines[39].starts_with("q end  h help  s order: number"), "{text}");
}

#[test]
fn eighty_columns_have_what_counts() {
    let lines = drawn(&mut screen(), 80, 24);
    let head = lines.iter().find(|line| line.contains("NODE")).unwrap();
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>().join(" "),
        "NODE ADDRESS STATE PROCESSORS RUN WAIT NOT MOVED",
        "{}",
        lines.join("\n")
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn no_terminal_is_too_small() {
    for (width, height) in [(20, 5), (1, 1), (0, 0), (1, 50), (200, 1), (3, 3), (40, 12)] {
        let mut screen = screen();
        for help in [false, true] {
            let lines = drawn(&mut screen, width, height);
            assert_eq!(lines.len(), usize::from(height));
            if help || width < 20 {
                continue;
            }
            assert!(lines[0].starts_with("gristmill  "), "{lines:?}");
            press(&mut screen, KeyCode::Char('h'));
        }
        for code in [KeyCode::PageDown, KeyCode::End, KeyCode::Up, KeyCode::PageUp, KeyCode::Home] {
            assert_eq!(press(&mut screen, code), KeyOutcome::Continue);
            drawn(&mut screen, width, height);
        }
    }
    let lines = drawn(&mut screen(), 20, 5);
    assert_eq!(lines[1], "not moved    3.00 G…");
}

#[test]
fn keys_scroll_sort_and_help() {
    let mut screen = screen();
    let order = |lines: &[String]| -> Vec<u32> {
        let starts =
            lines.iter().filter(|line| line.contains("127.0.0.1:744") && !line.contains("gristmill"));
        starts.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(order(&drawn(&mut screen, 120, 40)), [0, 1, 2, 3]);
    press(&mut screen, KeyCode::Char('s'));
    // The busiest first; one that does not answer does nothing.
    assert_eq!(order(&drawn(&mut screen, 120, 40)), [2, 1, 0, 3]);
    let small = drawn(&mut screen, 80, 10);
    assert!(small[9].contains("more below"), "{small:?}");
    press(&mut screen, KeyCode::End);
    let end = drawn(&mut screen, 80, 10);
    assert!(end[8].starts_with("sum") && !end[9].contains("more below"), "{end:?}");
    assert_eq!(small[..3], end[..3]);
    press(&mut screen, KeyCode::Home);
    assert_eq!(drawn(&mut screen, 80, 10), small);
    press(&mut screen, KeyCode::Char('?'));
    assert!(drawn(&mut screen, 80, 24).iter().any(|line| line.starts_with("q, Esc, Ctrl-C")));
    press(&mut screen, KeyCode::Char('h'));
    assert_eq!(drawn(&mut screen, 80, 10), small);
}

#[test]
fn keys_end_it() {
    let mut screen = screen();
    assert_eq!(press(&mut screen, KeyCode::Char('q')), KeyOutcome::Quit);
    assert_eq!(press(&mut screen, KeyCode::Esc), KeyOutcome::Quit);
    assert_eq!(screen.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), KeyOutcome::Quit);
    assert_eq!(press(&mut screen, KeyCode::Char('c')), KeyOutcome::Continue);
}

#[test]
fn an_entry_node_that_is_silent_is_told_until_it_answers() {
    let mut screen = screen();
    screen.no_answer("the entry node\ndoes not answer", Duration::from_secs(7));
    let lines = drawn(&mut screen, 100, 24);
    assert_eq!(lines[3], "no answer for 7 s: the entry node does not answer");
    assert!(lines.iter().any(|line| line.contains("127.0.0.1:7441")), "what was known is still shown");
    screen.update(cluster(13.0));
    assert!(!drawn(&mut screen, 100, 24).iter().any(|line| line.contains("no answer for")));
}

#[test]
fn figures_that_cannot_be_are_drawn() {
    let mut lying = node(0, f64::INFINITY);
    lying.load = Some(NodeLoad {
        cpu: f64::NAN,
        others: -3.0,
        queued: f64::INFINITY,
        cores: f64::NAN,
        memory: Some((u64::MAX, 0)),
        io: Some(1e300),
        active: 0,
        running: u64::MAX,
        ..NodeLoad::default()
    });
    lying.requests[0].bytes = 0;
    lying.requests[0].age_seconds = f64::NAN;
    lying.kernels[0].rate = f64::NAN;
    let status = ClusterStatus { at: f64::NAN, nodes: vec![lying.clone(), lying] };
    let mut screen = Screen::new("entry", status.clone());
    screen.update(status);
    for sort in 0..4 {
        let lines = drawn(&mut screen, 160, 30);
        assert!(lines.iter().any(|line| line.contains("127.0.0.1:7440")), "{sort}: {lines:?}");
        press(&mut screen, KeyCode::Char('s'));
    }
}

#[test]
fn a_name_does_nothing_to_a_terminal() {
    assert_eq!(clean("a\u{1b}]0;b\u{7}\n\u{202e}c d"), "a\u{fffd}]0;b\u{fffd}\u{fffd}\u{fffd}c d");
    assert_eq!(clean("<img src=x>é"), "<img src=x>é");
    let mut sort = Sort::default();
    let names: std::collections::HashSet<&str> = (0..4)
        .map(|_| {
            sort = sort.next();
            sort.name()
        })
        .collect();
    assert_eq!((names.len(), sort), (4, Sort::Number));
}
