// SPDX-License-Identifier: Apache-2.0
//! The screen, from 80 columns and 24 lines upwards; a smaller one shows what fits.

use super::view::{Series, Sort, View};
use crate::command::stat::name::{code, event};
use crate::command::stat::number::{duration, float, megabytes, quantile, rate, short};
use metaslot_counters::Event;
use metaslot_counters::layout::bucket_end;
use metaslot_counters::read::Cell;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, RenderDirection, Sparkline};
use std::iter;

/// The eighths of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How it looks; all the same where colours are not wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Colours {
    accent: Style,
    second: Style,
    bad: Style,
    dim: Style,
}

impl Colours {
    /// Those of the terminal's own palette, which fits its background.
    pub(super) const fn of_terminal() -> Self {
        Self {
            accent: Style::new().fg(Color::Cyan),
            second: Style::new().fg(Color::Green),
            bad: Style::new().fg(Color::Red),
            dim: Style::new().add_modifier(Modifier::DIM),
        }
    }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, colours: Colours) {
    let area = frame.area();
    let [title, graphs, rows, below, keys] = Layout::vertical(heights(view, area)).areas(area);
    frame.render_widget(Paragraph::new(head(view, colours)), title);
    draw_graphs(frame, view, colours, graphs);
    draw_rows(frame, view, colours, rows);
    draw_below(frame, view, colours, below);
    frame.render_widget(Paragraph::new(keys_line(view.sort, colours)), keys);
}

/// A small screen keeps its lines for rows, a large one shows what is below them at length.
fn heights(view: &View, area: Rect) -> [Constraint; 5] {
    let [graphs, rows, below] = if is_large(area) {
        let rows = u16::try_from(view.rows().len()).unwrap_or(u16::MAX).saturating_add(2);
        let rows = rows.clamp(8, area.height / 2 - 8);
        [Constraint::Length(14), Constraint::Length(rows), Constraint::Fill(1)]
    } else {
        [Constraint::Length(5), Constraint::Min(3), Constraint::Length(6)]
    };
    [Constraint::Length(2), graphs, rows, below, Constraint::Length(1)]
}

const fn is_large(area: Rect) -> bool {
    area.height >= 40
}

/// A number in bold with what it is.
fn figure(number: String, what: &str) -> Vec<Span<'static>> {
    vec![Span::styled(number, BOLD), Span::raw(format!(" {what}   "))]
}

fn head(view: &View, colours: Colours) -> Vec<Line<'static>> {
    let now = view.total.last();
    let processes = view.processes.len();
    let word = if processes == 1 { "process" } else { "processes" };
    let mut title = vec![Span::styled("metaslot top   ", colours.accent.patch(BOLD))];
    title.extend(figure(processes.to_string(), word));
    title.push(Span::styled(format!("every {} s   ", trimmed(view.seconds)), colours.dim));
    if view.paused {
        title.push(Span::styled(" PAUSED ", CHOSEN));
    }
    let (batches, batched) = (view.happened(Event::LaneBatch), view.happened(Event::LaneBatched));
    let mut totals = figure(rate(now.operations, view.seconds), "op/s");
    totals.extend(figure(megabytes(now.bytes, view.seconds), "MB/s"));
    totals.extend(figure(rate(view.calls, view.seconds), "calls/s"));
    let failed = view.answers.iter().fold(0, |sum: u64, row| sum.saturating_add(row.2));
    let bad = if failed > 0 { colours.bad } else { Style::new() };
    let failed = figure(rate(failed, view.seconds), "failed/s");
    totals.extend(failed.into_iter().map(|span| span.patch_style(bad)));
    totals.extend(figure(rate(batches, view.seconds), "batches/s"));
    if batches > 0 {
        totals.extend(figure(format!("{:.1}", float(batched) / float(batches)), "in each"));
    }
    vec![Line::from(title), Line::from(totals)]
}

/// Without zeros at the end.
fn trimmed(seconds: f64) -> String {
    let text = format!("{seconds:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// What is chosen, or all of it, over time.
fn draw_graphs(frame: &mut Frame<'_>, view: &View, colours: Colours, area: Rect) {
    let chosen = view.selected();
    let name = chosen.map_or_else(
        || "all".to_owned(),
        |(names, _)| names.iter().map(|name| name.text()).collect::<Vec<_>>().join(" "),
    );
    let series = chosen.map_or(&view.total, |(_, series)| series);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(area);
    let operations = series.rates(|cell| cell.operations);
    let bytes = series.rates(|cell| cell.bytes);
    let peak = |rates: &[u64]| rates.iter().copied().max().unwrap_or(0);
    let most = short(float(peak(&operations)));
    let title = format!(" op/s, at most {most}: {name} ");
    graph(frame, &operations, &title, colours.accent, colours, left);
    let most = megabytes(peak(&bytes), 1.0);
    let title = format!(" MB/s, at most {most} ");
    graph(frame, &bytes, &title, colours.second, colours, right);
}

fn graph(
    frame: &mut Frame<'_>,
    rates: &[u64],
    title: &str,
    style: Style,
    colours: Colours,
    area: Rect,
) {
    let line = Sparkline::default().data(rates.iter().copied()).style(style);
    let line = line.direction(RenderDirection::RightToLeft).block(section(title, colours));
    frame.render_widget(line, area);
}

/// A heading with a line beside it.
fn section<'a>(title: &'a str, colours: Colours) -> Block<'a> {
    let title = Span::styled(title, BOLD);
    Block::new().borders(Borders::TOP).border_style(colours.dim).title(title)
}

/// Columns of numbers, each with its width.
const NUMBERS: [(&str, usize); 6] =
    [("OP/S", 6), ("MB/S", 6), ("ERR/S", 5), ("P50", 7), ("P90", 7), ("P99", 7)];

fn draw_rows(frame: &mut Frame<'_>, view: &View, colours: Colours, area: Rect) {
    let rows = view.rows();
    let widest = |at: usize, least: usize| {
        let widths = rows.iter().map(|(names, _)| names[at].text().chars().count());
        widths.max().unwrap_or(0).max(least)
    };
    let numbers: usize = NUMBERS.iter().map(|column| column.1 + 1).sum();
    let provider = widest(0, 8).min(16);
    let left = usize::from(area.width).saturating_sub(provider + 1 + numbers);
    let mechanism = widest(1, 9).min(left.saturating_sub(2));
    let trend = left.saturating_sub(mechanism + 2);
    let mut lines = vec![headings(view.sort, provider, mechanism)];
    let room = usize::from(area.height).saturating_sub(1);
    let chosen = view.selected().map(|row| row.0);
    let at = rows.iter().position(|row| Some(row.0) == chosen).unwrap_or(0);
    let skipped = (at + 1).saturating_sub(room);
    for (names, series) in rows.iter().skip(skipped).take(room) {
        let name = |at: usize, width: usize| format!("{:width$} ", cut(&names[at].text(), width));
        let (now, times) = (series.last(), series.times());
        let idle = if now.operations == 0 { colours.dim } else { Style::new() };
        let mut spans = vec![Span::raw(name(0, provider)), Span::raw(name(1, mechanism))];
        spans.extend(numbers_of(&now, &times, view.seconds, colours));
        spans.push(Span::raw(" "));
        spans.push(Span::styled(bars(series, trend), colours.accent));
        let line = Line::from(spans).style(idle);
        lines.push(if Some(*names) == chosen { line.style(CHOSEN) } else { line });
    }
    if rows.is_empty() {
        lines.push(Line::styled("no operation ended yet", colours.dim));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn headings(sort: Sort, provider: usize, mechanism: usize) -> Line<'static> {
    let marked = |name: &str| {
        if name == sort.name() { BOLD.add_modifier(Modifier::UNDERLINED) } else { BOLD }
    };
    let blanks = |width: usize, name: &str| " ".repeat(width.saturating_sub(name.len()));
    let mut spans = vec![
        Span::styled("PROVIDER", marked("PROVIDER")),
        Span::raw(blanks(provider + 1, "PROVIDER")),
        Span::styled("MECHANISM", BOLD),
        Span::raw(blanks(mechanism + 1, "MECHANISM")),
    ];
    for (name, width) in NUMBERS {
        spans.extend([
            Span::raw(blanks(width, name)),
            Span::styled(name, marked(name)),
            Span::raw(" "),
        ]);
    }
    Line::from(spans)
}

fn numbers_of(now: &Cell, times: &Cell, seconds: f64, colours: Colours) -> Vec<Span<'static>> {
    let texts = [
        rate(now.operations, seconds),
        megabytes(now.bytes, seconds),
        rate(now.errors, seconds),
        quantile(times, 50),
        quantile(times, 90),
        quantile(times, 99),
    ];
    let cells = NUMBERS.iter().zip(texts).map(|((name, width), text)| {
        let bad = *name == "ERR/S" && now.errors > 0;
        Span::styled(format!("{text:>width$} "), if bad { colours.bad } else { Style::new() })
    });
    cells.collect()
}

/// The last intervals, the newest at the right.
fn bars(series: &Series, width: usize) -> String {
    let rates = series.rates(|cell| cell.operations);
    let shown: Vec<u64> = rates.into_iter().take(width).collect();
    let most = shown.iter().copied().max().unwrap_or(0).max(1);
    let bar = |rate: &u64| match rate {
        0 => ' ',
        rate => {
            BARS[usize::try_from((u128::from(*rate) * 8).div_ceil(u128::from(most)))
                .unwrap_or(8)
                .clamp(1, 8)
                - 1]
        }
    };
    let drawn: String = shown.iter().rev().map(bar).collect();
    format!("{drawn:>width$}")
}

/// The text, or its beginning.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Processes, what failed, and on a large screen the times of what is chosen.
fn draw_below(frame: &mut Frame<'_>, view: &View, colours: Colours, area: Rect) {
    let times_too = area.width >= 140 && is_large(frame.area());
    // Names of units are long.
    let left = if area.width >= 120 && !view.clients.is_empty() { 58 } else { 38 };
    let mut widths = vec![Constraint::Length(left), Constraint::Fill(1)];
    widths.extend(times_too.then_some(Constraint::Fill(1)));
    let areas = Layout::horizontal(widths).spacing(2).split(area);
    list(frame, " processes ", processes(view, colours, left), colours, areas[0]);
    list(frame, " answers and events ", happenings(view, colours), colours, areas[1]);
    if let Some(area) = areas.get(2) {
        let series = view.selected().map_or(&view.total, |row| row.1);
        let lines = times(&series.times(), usize::from(area.width), colours);
        list(frame, " times ", lines, colours, *area);
    }
}

/// Lines under a heading; the last one says how many are missing.
fn list(
    frame: &mut Frame<'_>,
    title: &str,
    mut lines: Vec<Line<'static>>,
    colours: Colours,
    area: Rect,
) {
    let room = usize::from(area.height).saturating_sub(1).max(1);
    if lines.len() > room {
        let more = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(Line::styled(format!("and {more} more"), colours.dim));
    }
    frame.render_widget(Paragraph::new(lines).block(section(title, colours)), area);
}

/// Below a daemon its clients, by user and unit.
fn processes(view: &View, colours: Colours, width: u16) -> Vec<Line<'static>> {
    // Behind it are a number of seven digits and what it is.
    let width = usize::from(width).saturating_sub(14);
    let line = |name: &str, operations| {
        let idle = if operations == 0 { colours.dim } else { Style::new() };
        let done = rate(operations, view.seconds);
        Line::styled(format!("{:width$} {done:>7} op/s", cut(name, width)), idle)
    };
    let clients = |process: u32| {
        let own = view.clients.iter().filter(move |unit| unit.pid == process);
        own.map(|unit| line(&format!("   - {}", unit.name(&view.users)), unit.operations))
    };
    let lines = |(pid, program, cell): &(u32, String, Cell)| {
        let process = line(&format!("{pid:>7} {program}"), cell.operations);
        iter::once(process).chain(clients(*pid)).collect::<Vec<_>>()
    };
    view.processes.iter().flat_map(lines).collect()
}

fn happenings(view: &View, colours: Colours) -> Vec<Line<'static>> {
    let line = |count: u64, text: String, style: Style| {
        Line::styled(format!("{:>5}/s {text}", rate(count, view.seconds)), style)
    };
    let answers = view.answers.iter();
    let answers = answers.map(|(function, rv, count)| {
        let name = code(*rv);
        let short = name.strip_prefix("CKR_").unwrap_or(&name);
        line(*count, format!("{} {short}", function.name()), colours.bad)
    });
    let batches = [Event::LaneBatch, Event::LaneBatched, Event::MemoryNotLocked];
    let events = view.events.iter().filter(|row| !batches.contains(&row.0));
    let events = events.map(|(what, count)| line(*count, event(*what).to_owned(), Style::new()));
    let met = view.clients.iter().flat_map(|unit| {
        let name = unit.name(&view.users);
        unit.troubles().map(move |(what, count)| (format!("{name}: {what}"), count))
    });
    let met = met.map(|(text, count)| line(count, text, colours.bad));
    met.chain(answers).chain(events).collect()
}

/// How many took how long, as bars.
fn times(cell: &Cell, width: usize, colours: Colours) -> Vec<Line<'static>> {
    let used = |at: &usize| cell.buckets[*at] > 0;
    let buckets = || 0..cell.buckets.len();
    let (Some(first), Some(last)) = (buckets().find(used), buckets().rfind(used)) else {
        return vec![Line::styled("none was timed", colours.dim)];
    };
    let most = cell.buckets.iter().copied().max().unwrap_or(1);
    let line = |at: usize| {
        let limit =
            bucket_end(at).map_or_else(|| "more".to_owned(), |end| format!("<{}", duration(end)));
        let room = width.saturating_sub(16) as u128;
        let length =
            usize::try_from(u128::from(cell.buckets[at]) * room / u128::from(most)).unwrap_or(0);
        let percent = 100.0 * float(cell.buckets[at]) / float(cell.timed());
        let bar = Span::styled("█".repeat(length), colours.second);
        Line::from(vec![Span::raw(format!("{limit:>7} {percent:>3.0}% ")), bar])
    };
    (first..=last).map(line).collect()
}

fn keys_line(sort: Sort, colours: Colours) -> Line<'static> {
    let sort = format!("sort: {}", sort.name());
    let keys =
        [("q", "quit"), ("p", "pause"), ("s ← →", &sort), ("↑ ↓", "choose a row"), ("Esc", "all")];
    let spans = keys.into_iter().flat_map(|(key, what)| {
        [Span::styled(format!(" {key} "), CHOSEN), Span::styled(format!(" {what}  "), colours.dim)]
    });
    Line::from(spans.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
