package expression

import (
	"testing"
)

const (
	usualCondition = `exit in [1, 75] and stderr matches "timed out"`
	usualFormula   = "15 + n^4 + rand(30) * (n + 1)"
)

func BenchmarkCondition(b *testing.B) {
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Condition(usualCondition); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("match", func(b *testing.B) {
		c, err := Condition(usualCondition)
		if err != nil {
			b.Fatal(err)
		}
		e := evidence(nil)
		b.ReportAllocs()
		for b.Loop() {
			if ok, err := c.Match(e); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
}

func BenchmarkFormula(b *testing.B) {
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Formula(usualFormula); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("seconds", func(b *testing.B) {
		f, err := Formula(usualFormula)
		if err != nil {
			b.Fatal(err)
		}
		half := always(0.5)
		b.ReportAllocs()
		for b.Loop() {
			if s, err := f.Seconds(3, 0, half); s <= 0 || err != nil {
				b.Fatal(s, err)
			}
		}
	})
}
