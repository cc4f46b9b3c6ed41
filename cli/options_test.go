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
	return command.Over(command.HookFlags.Options()), err
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
