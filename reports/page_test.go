package reports

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// palette reads the colours of one theme out of the stylesheet: the light one first, then the dark.
func palette(t *testing.T, theme int) map[string][3]float64 {
	t.Helper()
	roots := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(stylesheet, -1)
	if len(roots) < 2 {
		t.Fatalf("%d themes in the stylesheet", len(roots))
	}
	colours := map[string][3]float64{}
	for _, m := range regexp.MustCompile(`--([a-z0-9]+):#([0-9a-f]{3,6})\b`).FindAllStringSubmatch(roots[theme][1], -1) {
		hex := m[2]
		if len(hex) == 3 {
			hex = fmt.Sprintf("%c%c%c%c%c%c", hex[0], hex[0], hex[1], hex[1], hex[2], hex[2])
		}
		var c [3]float64
		for i := range c {
			v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			c[i] = float64(v) / 255
		}
		colours[m[1]] = c
	}
	return colours
}

// contrast is the ratio of WCAG 2.1, from relative luminance.
func contrast(a, b [3]float64) float64 {
	luminance := func(c [3]float64) float64 {
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := c[i]
			if v <= 0.03928 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrast(t *testing.T) {
	if got := contrast([3]float64{0, 0, 0}, [3]float64{1, 1, 1}); math.Abs(got-21) > 1e-9 {
		t.Fatalf("black on white is %g, want 21", got)
	}
	for theme, name := range []string{"light", "dark"} {
		c := palette(t, theme)
		for _, back := range []string{"bg", "card", "cutbg"} {
			for _, ink := range []string{"ink", "mute", "cap", "cut", "good", "accent", "few"} {
				if back == "cutbg" && (ink == "accent" || ink == "few") {
					continue // neither stands there
				}
				if got := contrast(c[ink], c[back]); got < 4.5 {
					t.Errorf("%s: text %s on %s has %.2f, AA wants 4.5", name, ink, back, got)
				}
			}
		}
		for _, shape := range []string{"cap", "whole", "cut", "axis", "s0", "s1", "s2", "s3"} {
			if got := contrast(c[shape], c["card"]); got < 3 {
				t.Errorf("%s: shapes in %s on a card have %.2f, AA wants 3", name, shape, got)
			}
		}
	}
}
