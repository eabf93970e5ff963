// SPDX-License-Identifier: Apache-2.0
//! `metaslot top`: what the counter pages say, on a screen that changes.

mod clients;
mod draw;
mod view;

use super::stat::clients::Users;
use super::stat::difference;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::places;
use draw::Colours;
use metaslot_counters::clients::served;
use metaslot_counters::read;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use view::View;

/// Arguments of `top`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Seconds between two looks
    #[arg(value_name = "SECONDS", default_value = "1", value_parser = super::stat::interval)]
    interval: Duration,
}

/// How soon a signal is noticed.
const PATIENCE: Duration = Duration::from_millis(200);

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    if app.output.json || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("'metaslot top' needs a terminal")
            .hint("'metaslot stat 1' prints lines, with --json documents"));
    }
    super::stat::check_directory()?;
    let cannot = |error: io::Error| Failure::io("cannot use the terminal", &error);
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(cannot)?;
    }
    // Restored by a panic too: that is what the library's own hook is for.
    let shown =
        ratatui::try_init().and_then(|mut terminal| show(&mut terminal, args.interval, &ended));
    ratatui::restore();
    shown.map_err(cannot)
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    interval: Duration,
    ended: &AtomicBool,
) -> io::Result<()> {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = if plain { Colours::default() } else { Colours::of_terminal() };
    let mut view = View::new(interval, Users::read());
    let directories = places::counters();
    let look = || (read::processes(&directories), clients::units(&served(&directories)));
    let mut before = look();
    let mut looked = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        terminal.draw(|frame| draw::draw(frame, &view, colours))?;
        let left = (looked + interval).saturating_duration_since(Instant::now());
        if gone(left.min(PATIENCE))? {
            return Ok(());
        }
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if !press(&mut view, key) => return Ok(()),
                _ => {}
            }
        }
        if looked.elapsed() >= interval {
            let now = look();
            let seconds = looked.elapsed().as_secs_f64();
            looked = Instant::now();
            if !view.paused {
                view.push(&difference::since(&now.0, &before.0), seconds);
                view.clients = clients::since(&now.1, &before.1);
            }
            before = now;
        }
    }
    Ok(())
}

/// Waits for a key or a signal, and says whether the terminal is there no more: the library that
/// reads keys would ask it for ever.
fn gone(patience: Duration) -> io::Result<bool> {
    let keyboard = io::stdin();
    let mut ready = [PollFd::new(&keyboard, PollFlags::IN)];
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut ready, Some(&patience)) {
        Ok(_) | Err(Errno::INTR) => Ok(ready[0].revents().contains(PollFlags::HUP)),
        Err(errno) => Err(errno.into()),
    }
}

/// A key; `false` ends the program.
fn press(view: &mut View, key: KeyEvent) -> bool {
    if key.kind == KeyEventKind::Release {
        return true;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Char('q') => return false,
        KeyCode::Char('p' | ' ') => view.paused = !view.paused,
        KeyCode::Char('s') | KeyCode::Right => view.order(true),
        KeyCode::Left => view.order(false),
        KeyCode::Up => view.select(-1),
        KeyCode::Down => view.select(1),
        KeyCode::PageUp => view.select(-10),
        KeyCode::PageDown => view.select(10),
        KeyCode::Esc | KeyCode::Home => view.select(isize::MIN),
        _ => {}
    }
    true
}
