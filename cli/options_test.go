package cli

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/10f93571/retry/task"
)

// parsedOptions returns the options that flags make.
func parsedOptions(t *testing.T, args string) (task.Options, error) {
	t.Helper()
	command := &runCommand{}
	parser, err := testProcess().newParser("run", command)
	if err != nil {
		t.Fatal(err)
	}
	line, err := splitLine(append(strings.Fields(args), "--", "x"), newFlagSet("run", parser.Model))
	if err != nil {
		return task.Options{}, err
	}
	_, err = parser.parse(line)
	return command.over(command.hookFlags.options()), err
}

func seed(n uint64) *uint64 { return &n }

// What is as usual stays empty, so that a plain command has no options to store and to show.
func TestOptions(t *testing.T) {
	tests := []struct {
		args string
		want task.Options
	}{
		{"", task.Options{}},
		{"--stdin auto --output stream --capture none", task.Options{}},
		{"--stdin replay", task.Options{Stdin: task.StdinReplay}},
		{"--stdin=null", task.Options{Stdin: task.StdinNull}},
		{"--output final", task.Options{Output: task.OutputFinal, OutputLimit: 2 << 30}},
		{"--output final --output-limit 0", task.Options{Output: task.OutputFinal}},
		{"--output final --output-limit 512M", task.Options{Output: task.OutputFinal, OutputLimit: 512 << 20}},
		{"--output success", task.Options{Output: task.OutputSuccess}}, // the limit is final's alone
		{"--output failure --output-limit 5", task.Options{Output: task.OutputFailure}},
		{"--output-limit 5", task.Options{}},
		{"--capture stderr", task.Options{Capture: task.CaptureStderr}},
		{"--capture both", task.Options{Capture: task.CaptureBoth}},
		{"--on-retry a --on-success b --on-failure c", task.Options{OnRetry: "a", OnSuccess: "b", OnFailure: "c"}},
		{"--on-failure=x,y;z", task.Options{OnFailure: "x,y;z"}},
		{"--seed 0", task.Options{Seed: seed(0)}},
		{"--seed 18446744073709551615", task.Options{Seed: seed(math.MaxUint64)}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			if got, err := parsedOptions(t, tt.args); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	tests := []struct{ args, want string }{
		{"--stdin sometimes", "--stdin"}, {"--output last", "--output"}, {"--capture stdout", "--capture"},
		{"--seed -1", "--seed"}, {"--seed x", "--seed"}, {"--seed 18446744073709551616", "--seed"}, {"--seed 1.5", "--seed"},
		{"--output-limit much", `--output-limit: "much" is no size`}, {"--output-limit=-1", `--output-limit: "-1" is no size`},
	}
	for _, tt := range tests {
		_, err := parsedOptions(t, tt.args)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), "\nhint: ") != 1 {
			t.Errorf("%s: got %v, want %q and a hint", tt.args, err, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"0": 0, "1": 1, "4096": 4096, "1b": 1, "1k": 1 << 10, "1K": 1 << 10, "1kb": 1 << 10, "1KiB": 1 << 10, "512M": 512 << 20, "512mb": 512 << 20,
		"2GiB": 2 << 30, "1.5G": 3 << 29, "1T": 1 << 40, "1P": 1 << 50, "3 MiB": 3 << 20, "1e3": 1000,
	} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestSizeRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "-1", "-1G", "-0.1", "x", "M", "1X", "1GBs", "1 G B", "1,5G", "two", "1e999", "0x10", "1..5", "+", "NaN", "Inf", "1\x00", "1\x1b[2JG", "١",
	} {
		got := size(42)
		err := got.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), " is no size\nhint: write it like 512M, 2GiB, or a number of bytes") || got != 42 {
			t.Errorf("%q: got %d, %v", text, got, err)
			continue
		}
		if strings.ContainsAny(err.Error(), "\x00\x1b") {
			t.Errorf("raw: %q", err)
		}
	}
}

func TestSizeIsShownAsItIsWritten(t *testing.T) {
	for n, want := range map[size]string{0: "0B", 512: "512B", 1 << 10: "1KiB", 3 << 29: "1.5GiB", 2 << 30: "2GiB"} {
		if got := n.String(); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, text := range []string{"2GiB", "512M", "-1", "1e18P", "nan ", "inf ", "9999999999P", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s size
		if err := s.UnmarshalText([]byte(text)); s < 0 || (err != nil && s != 0) {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	})
}
