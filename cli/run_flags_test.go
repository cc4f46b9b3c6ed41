package cli

import (
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func runModel(t *testing.T, fields any) flagSet {
	t.Helper()
	parser, err := testProcess().newParser("run", fields)
	if err != nil {
		t.Fatal(err)
	}
	return newFlagSet("run", parser.Model)
}

func TestRunFlagGroupsNameWhatTheyHold(t *testing.T) {
	all := runModel(t, &runCommand{}).named
	names := strings.Fields(ungroupedFlags)
	for _, g := range runFlagGroups {
		grouped := strings.Fields(g.names)
		names = append(names, grouped...)
		held := runModel(t, &struct{ kong.Plugins }{kong.Plugins{g.of(&runCommand{})}}).named
		for _, name := range grouped {
			if held[name] == nil {
				t.Errorf("--%s is not in its struct", name)
			}
		}
		if extra := len(held) - len(grouped); extra != 2 { // --help and -h
			t.Errorf("the struct of%sholds %d more names than listed, not --help and -h alone", g.names, extra)
		}
	}
	if len(names) != len(all) {
		t.Errorf("%d names are listed, %d flags and letters are there", len(names), len(all))
	}
	for _, name := range names {
		if all[name] == nil {
			t.Errorf("%s is listed, but no flag", name)
		}
	}
}

func TestNewRunCommandHasTheDefaultsOfTheTags(t *testing.T) {
	want := &runCommand{}
	parser, err := testProcess().newParser("run", want)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.parse(commandLine{subcommand: "run"}); err != nil {
		t.Fatal(err)
	}
	if got := newRunCommand(); !reflect.DeepEqual(got, want) {
		t.Errorf("newRunCommand() is\n%+v, not\n%+v", got, want)
	}
}

func TestTypedFlagsAreReadAsByTheWholeParser(t *testing.T) {
	for _, args := range []string{
		"", "true", "-- true", "run -- true", "true -n 3", "-n 3 -- true", "-n3 true -q", "-vn3 true", "-vn=3 true", "--attempts 3 true",
		"--attempts=3 --budget 1m true", "-n 3 -n 4 true", "--id a --once -- true", "--capture stderr --stdin=null --output final true",
		"--state /x --retention 1d true", "--on-retry x --seed 7 true", "--group true", "--keep-env A,B true", "--config /c --report r true",
		"--retry-on a,b --retry-on c true", "--backoff -n true", "--dry-run --json true", "--idempotency-key k true", "--version",
		"-n 3 status", "-v status -n", "run -q true", "-q run true",
		"-n", "-n --", "--attempts", "-n x true", "-x true", "-N 3 true", "-attempts 3 true", "-retry 3 true", "--attempt 3 true", "--capture all true",
		"-q=x true", "--quiet=x true", "-nv true", "--log-format yaml true", "-n 3 --unknown true", "--no-quiet true", "-ö true", "--n 3 true",
	} {
		p := testProcess()
		p.Args = strings.Fields(args)
		whole, pruned := newRunCommand(), newRunCommand()
		want, wantErr := p.parse(whole, nil)
		got, err := p.parse(pruned, typedFlags(pruned, p.Args))
		if (err == nil) != (wantErr == nil) {
			t.Errorf("retry %s: error %v, not %v", args, err, wantErr)
			continue
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("retry %s is read as\n%+v, not as\n%+v", args, got, want)
		}
	}
}
