// SPDX-License-Identifier: Apache-2.0
//! Logarithmic scales: of an axis, and of the colour of a cost.

/// From values to a stretch of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale of these values over `from..to`; one value alone stands in the middle.
    pub(super) fn of(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let logs = values.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln);
        let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
            (low.min(log), high.max(log))
        });
        if low > high {
            return None;
        }
        let room = if high > low { 0.0 } else { 0.5 };
        Some(Self { low: low - room, high: high + room, from, to })
    }

    /// The same with both ends moved out by a share of the whole.
    pub(super) fn wider(self, share: f64) -> Self {
        let room = (self.high - self.low) * share;
        Self { low: self.low - room, high: self.high + room, ..self }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.ln() - self.low) / (self.high - self.low);
        (self.to - self.from).mul_add(share, self.from)
    }

    /// Round values in the range, for the axis: 1, 2 and 5 times powers of ten, fewer where there are
    /// many, and more where there are few.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let (low, high) = (self.low.exp(), self.high.exp());
        if high / low < 2.5 {
            return even(low, high);
        }
        let decades = low.log10().floor();
        let count = (high.log10().ceil() - decades).clamp(1.0, 30.0);
        let multiples: &[f64] = match count {
            _ if high / low < 8.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            count if count > 5.0 => &[1.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let mut ticks = Vec::new();
        let mut decade = 10f64.powf(decades);
        while decade <= high {
            ticks.extend(multiples.iter().map(|multiple| multiple * decade));
            decade *= 10.0;
        }
        ticks.retain(|tick| (low..=high).contains(tick));
        ticks
    }
}

/// Round values at even distances, four to eight of them.
fn even(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [5.0, 2.0, 1.0].map(|multiple| multiple * power).into_iter().find(|step| *step <= rough);
    let step = step.unwrap_or(power);
    let mut ticks = Vec::new();
    let mut at = (low / step).ceil();
    while at * step <= high {
        ticks.push(at * step);
        at += 1.0;
    }
    ticks
}

/// Steps of colour: cheap to dear.
const STEPS: f64 = 8.0;

/// The step of a cost's colour among all costs of a table, 0 to 7.
pub(super) fn heat(value: f64, of: Option<Scale>) -> usize {
    let share = of.map_or(0.0, |scale| scale.at(value));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
    let step = (share.clamp(0.0, 0.999) * STEPS) as usize;
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_ends_and_ticks_are_round() {
        let scale = Scale::of([3.0, 300.0].into_iter(), 10.0, 110.0).unwrap();
        assert!((scale.at(3.0) - 10.0).abs() < 1e-9 && (scale.at(300.0) - 110.0).abs() < 1e-9);
        assert!((scale.at(30.0) - 60.0).abs() < 1e-9);
        assert_eq!(scale.ticks(), [5.0, 10.0, 20.0, 50.0, 100.0, 200.0]);
        let narrow = Scale::of([940.0, 1310.0].into_iter(), 0.0, 1.0).unwrap();
        assert_eq!(narrow.ticks(), [950.0, 1000.0, 1050.0, 1100.0, 1150.0, 1200.0, 1250.0, 1300.0]);
        assert!(Scale::of([f64::NAN, -1.0].into_iter(), 0.0, 1.0).is_none());
        let one = Scale::of([7.0].into_iter(), 0.0, 1.0).unwrap();
        assert!((one.at(7.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn colours_go_from_cheap_to_dear() {
        let scale = Scale::of([1.0, 256.0].into_iter(), 0.0, 1.0);
        let steps: Vec<usize> = [1.0, 3.0, 17.0, 256.0].map(|value| heat(value, scale)).into();
        assert_eq!(steps, [0, 1, 4, 7]);
        assert_eq!(heat(5.0, None), 0);
    }
}
