package main

import "math"

// random is the SplitMix64 generator (Steele, Lea and Flood, OOPSLA 2014). It is
// written out here, not taken from math/rand, because an export must have the same
// bytes for the same seed under every Go release.
type random struct{ state uint64 }

// mix is SplitMix64's finaliser: a bijection that scatters neighbouring inputs.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// newRandom returns the stream of one message: the same for a seed, week and number
// whatever else is generated, so that a longer export starts with the shorter one's
// wording.
func newRandom(seed uint64, year, week, message int) random {
	s := mix(seed + 0x9e3779b97f4a7c15)
	s = mix(s ^ uint64(year)<<32 ^ uint64(week)<<8)
	return random{mix(s + uint64(message)*0x9e3779b97f4a7c15)}
}

func (r *random) uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	return mix(r.state)
}

// below returns a number in [0, n); the bias of the multiplication, under n/2^32,
// is of no matter here.
func (r *random) below(n int) int {
	return int((r.uint64() >> 32) * uint64(n) >> 32)
}

// unit returns a number in [0, 1).
func (r *random) unit() float64 { return float64(r.uint64()>>11) / (1 << 53) }

// chance is true with probability p.
func (r *random) chance(p float64) bool { return r.unit() < p }

// normal draws from the standard normal distribution (Box and Muller).
func (r *random) normal() float64 {
	u := 1 - r.unit() // in (0, 1]: the logarithm is finite
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*r.unit())
}

// weighted returns an index with probability in proportion to its weight.
func (r *random) weighted(weights []float64) int {
	var total float64
	for _, w := range weights {
		total += w
	}
	x := r.unit() * total
	for i, w := range weights {
		if x < w {
			return i
		}
		x -= w
	}
	return len(weights) - 1 // rounding left x at the very end
}
