//! A painting of a weir: evening sky, hills, the still pool above, the fall between piers, waves below.
//!
//! Places are `x` from 0 to 16/9 and `y` from 0 at the top to 1; colours and shares run from 0 to 1. Only
//! additions, products, square roots and rounding are used, which give the same bits on every machine.

use super::jpeg::Picture;

pub(super) const WIDTH: u16 = 1024;
pub(super) const HEIGHT: u16 = 576;

/// Half the range of the grain over everything, in levels of 256: it decides the size of the file.
const GRAIN: f32 = 5.0;

/// Where the land ends and the pool begins.
const SHORE: f32 = 0.40;

const SUN: (f32, f32) = (1.30, 0.19);

#[derive(Clone, Copy)]
struct Colour(f32, f32, f32);

impl Colour {
    fn towards(self, other: Self, share: f32) -> Self {
        let mix = |from: f32, to: f32| from + (to - from) * share;
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }

    fn lit(self, light: f32) -> Self {
        Self(self.0 * light, self.1 * light, self.2 * light)
    }
}

const WHITE: Colour = Colour(0.96, 0.98, 1.0);
const SUNLIGHT: Colour = Colour(1.0, 0.90, 0.66);

/// The whole painting.
pub(super) fn weir() -> Picture {
    let (width, height) = (u32::from(WIDTH), u32::from(HEIGHT));
    let pixel = |column: u32, row: u32| {
        let x = (column as f32 + 0.5) / height as f32;
        let y = (row as f32 + 0.5) / height as f32;
        let Colour(red, green, blue) = colour(x, y);
        // Two draws make small deviations likelier than large ones.
        let (column, row) = (column as i32, row as i32);
        let grain = (lattice(column, row, 100) + lattice(column, row, 101) - 1.0) * GRAIN;
        [red, green, blue].map(|share| (share * 255.0 + grain + 0.5) as u8)
    };
    let pixels = (0..width * height).map(|index| pixel(index % width, index / width)).collect();
    Picture { width: WIDTH, height: HEIGHT, pixels }
}

fn colour(x: f32, y: f32) -> Colour {
    let crest = 0.525 + 0.012 * wave(x / 3.6 + 0.2);
    let foot = 0.715 + 0.016 * smooth(x * 7.0, 0.0, 1);
    if let Some(stone) = pier(x, y, foot) {
        stone
    } else if y < SHORE {
        land(x, y)
    } else if y < crest {
        pool(x, y)
    } else if y < foot {
        fall(x, (y - crest) / (foot - crest))
    } else {
        waves(x, y, foot)
    }
}

/// Sky with the hills in front of it.
fn land(x: f32, y: f32) -> Colour {
    let far = 0.345 - 0.085 * layered(x * 1.7, 3.0, 2, 4);
    let near = 0.395 - 0.075 * layered(x * 2.6, 8.0, 3, 6);
    if y > near {
        let leaves = layered(x * 60.0, y * 75.0, 4, 3);
        Colour(0.10, 0.18, 0.13).towards(Colour(0.27, 0.36, 0.19), ramp(0.3, 0.75, leaves))
    } else if y > far {
        let haze = ramp(far, SHORE, y);
        let wood = 0.92 + 0.16 * layered(x * 34.0, y * 60.0, 5, 3);
        Colour(0.36, 0.45, 0.54).towards(Colour(0.66, 0.66, 0.64), haze).lit(wood)
    } else {
        sky(x, y)
    }
}

fn sky(x: f32, y: f32) -> Colour {
    let air = Colour(0.26, 0.44, 0.70).towards(Colour(0.98, 0.85, 0.68), ramp(0.0, 0.38, y));
    let cloud = ramp(0.48, 0.78, layered(x * 2.4 + y, y * 9.0, 6, 5));
    let lined = Colour(0.80, 0.74, 0.76).towards(WHITE, layered(x * 5.0, y * 16.0, 7, 3));
    let (across, down) = (x - SUN.0, y - SUN.1);
    let distance = (across * across + down * down).sqrt();
    let glow = ramp(0.45, 0.02, distance);
    air.towards(lined, cloud * 0.8)
        .towards(SUNLIGHT, glow * glow * 0.6)
        .towards(WHITE, ramp(0.036, 0.032, distance))
}

/// What stands on its shore, upside down and shaken by ripples.
fn pool(x: f32, y: f32) -> Colour {
    let depth = y - SHORE;
    let ripple = smooth(x * 9.0, y * 190.0, 8) - 0.5;
    let mirrored = land(x + ripple * 0.02, SHORE - depth * 2.2 + ripple * depth * 0.35);
    let glint = ramp(0.78, 0.92, smooth(x * 26.0, y * 300.0, 9));
    mirrored.towards(Colour(0.13, 0.27, 0.33), 0.32 + depth).towards(SUNLIGHT, glint * 0.35)
}

/// Water in threads, glass at the crest and white at the foot; `down` is 0 at the one and 1 at the other.
fn fall(x: f32, down: f32) -> Colour {
    let sway = 0.012 * wave(x * 1.3 + down * 0.4);
    let threads = layered((x + sway) * 62.0, down * 2.4, 10, 4);
    let torn = layered(x * 40.0, down * 14.0, 11, 3);
    let white = ramp(0.30, 0.74, threads * 0.75 + torn * 0.25) * (0.35 + 0.65 * down);
    let water = Colour(0.16, 0.36, 0.42).towards(Colour(0.36, 0.55, 0.60), down);
    water.towards(WHITE, white).towards(SUNLIGHT, ramp(0.05, 0.0, down) * 0.45)
}

/// A piece of masonry that the water passes, if one stands here.
fn pier(x: f32, y: f32, foot: f32) -> Option<Colour> {
    const HALF_WIDTH: f32 = 0.021;
    const SPACING: f32 = 0.444;
    let nearest = ((x / SPACING).floor() + 0.5) * SPACING;
    let across = x - nearest;
    if across.abs() > HALF_WIDTH || y < 0.465 || y > foot + 0.006 {
        return None;
    }
    let course = (y * 62.0).floor();
    let joint = ramp(0.12, 0.0, y * 62.0 - course);
    let stone =
        0.72 + 0.35 * layered(x * 90.0, y * 90.0, 12, 3) + 0.12 * (lattice(course as i32, 0, 13) - 0.5);
    let side = 0.72 + 0.28 * ramp(-HALF_WIDTH, HALF_WIDTH, across);
    let top = ramp(0.474, 0.470, y);
    let wet = ramp(foot - 0.10, foot, y);
    let dry = Colour(0.52, 0.49, 0.45).lit(stone * side * (1.0 - 0.35 * joint));
    Some(dry.towards(Colour(0.20, 0.24, 0.22), wet * 0.6).towards(SUNLIGHT, top * 0.55))
}

/// Waves that grow towards the eye, with the foam of the fall on the first of them.
fn waves(x: f32, y: f32, foot: f32) -> Colour {
    let distance = 1.0 / (y - 0.56);
    let across = (x - 0.89) * distance;
    let swell = layered(across * 1.5, distance * 5.0, 14, 5);
    let crest = wave(distance * 1.7 + swell * 1.4 + 0.15 * wave(across * 0.5));
    let height = swell * 0.62 + (crest * 0.5 + 0.5) * 0.38;
    let water = Colour(0.05, 0.17, 0.23).towards(Colour(0.40, 0.58, 0.62), ramp(0.25, 0.80, height));
    let glint = ramp(0.60, 0.74, height) * ramp(0.62, 0.0, (x - SUN.0).abs());
    let torn = layered(x * 22.0, y * 52.0, 15, 4);
    let foam = ramp(foot + 0.16, foot, y) * 1.15 - torn * 0.75;
    water.towards(SUNLIGHT, glint * 0.8).towards(WHITE, ramp(0.0, 0.5, foam))
}

/// 0 up to `from`, 1 beyond `to`, an S between; `from` may be the larger one.
fn ramp(from: f32, to: f32, at: f32) -> f32 {
    let share = ((at - from) / (to - from)).clamp(0.0, 1.0);
    share * share * (3.0 - 2.0 * share)
}

/// A sine made of two parabolas, by turns.
fn wave(turns: f32) -> f32 {
    let rest = turns - turns.floor() - 0.5;
    -16.0 * rest * (0.5 - rest.abs())
}

/// Noise of several octaves, each half as strong and twice as fine as the one before.
fn layered(x: f32, y: f32, seed: u32, octaves: u32) -> f32 {
    let (mut sum, mut strengths, mut strength, mut scale) = (0.0, 0.0, 1.0, 1.0);
    for octave in 0..octaves {
        sum += strength * smooth(x * scale, y * scale, seed * 16 + octave);
        strengths += strength;
        strength *= 0.5;
        scale *= 2.0;
    }
    sum / strengths
}

/// Noise that changes smoothly between the points of a lattice with spacing 1.
fn smooth(x: f32, y: f32, seed: u32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (ramp(0.0, 1.0, x - left), ramp(0.0, 1.0, y - top));
    let (column, row) = (left as i32, top as i32);
    let mix = |row: i32| {
        let (from, to) = (lattice(column, row, seed), lattice(column + 1, row, seed));
        from + (to - from) * across
    };
    let (upper, lower) = (mix(row), mix(row + 1));
    upper + (lower - upper) * down
}

/// A number from 0 up to 1 for each point and seed.
fn lattice(column: i32, row: i32, seed: u32) -> f32 {
    let mut hash = (column as u32).wrapping_mul(0x9e37_79b1)
        ^ (row as u32).wrapping_mul(0x85eb_ca77)
        ^ seed.wrapping_mul(0xc2b2_ae3d);
    hash = (hash ^ hash >> 15).wrapping_mul(0x2c1b_3c6d);
    hash = (hash ^ hash >> 12).wrapping_mul(0x297a_2d39);
    hash ^= hash >> 15;
    // 24 bits are as many as the number can hold.
    (hash >> 8) as f32 / 16_777_216.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_fills_its_range_evenly_and_has_no_jumps() {
        let mean = (0..10_000).map(|index| lattice(index % 100, index / 100, 1)).sum::<f32>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        for step in -500..500 {
            let x = step as f32 * 0.01;
            let (here, next) = (layered(x, 0.3, 1, 3), layered(x + 0.001, 0.3, 1, 3));
            assert!((0.0..=1.0).contains(&here) && (here - next).abs() < 0.01, "{x}: {here} {next}");
        }
    }

    #[test]
    fn a_wave_goes_up_and_down_once_a_turn() {
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0, -0.75].map(wave), [0.0, 1.0, 0.0, -1.0, 0.0, 1.0]);
    }

    #[test]
    fn the_painting_is_neither_dark_nor_burnt_out() {
        let picture = weir();
        let levels = picture.pixels.as_flattened();
        let share = |of: fn(&u8) -> bool| {
            levels.iter().filter(|level| of(level)).count() as f64 / levels.len() as f64
        };
        assert!(share(|level| *level == 0) < 0.01 && share(|level| *level == 255) < 0.15);
        assert!(share(|level| *level < 64) > 0.02 && share(|level| *level > 192) > 0.10);
    }
}
