package spool

import (
	"io"
	"os"
	"testing"
)

// BenchmarkWriteTo is how fast what is held in a file goes into a pipe that somebody reads: as pages, and by copies as everywhere else.
func BenchmarkWriteTo(b *testing.B) {
	ways := map[string]func(*os.File) io.Writer{
		"moved":  func(pipe *os.File) io.Writer { return pipe },
		"copied": func(pipe *os.File) io.Writer { return struct{ io.Writer }{pipe} },
	}
	for name, way := range ways {
		b.Run(name, func(b *testing.B) {
			const size = 64 << 20
			s := inAFile(b, make([]byte, size))
			read, write, err := os.Pipe()
			must(b, err)
			go func() { _, _ = io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{read}) }()
			b.SetBytes(size)
			for b.Loop() {
				if _, err := s.WriteTo(way(write)); err != nil {
					b.Fatal(err)
				}
			}
			_, _ = write.Close(), read.Close()
		})
	}
}
