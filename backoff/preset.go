package backoff

// Preset is a named policy's shape as its original defines it.
type Preset struct {
	Name, Curve, Jitter string
	Attempts            int    // all attempts, the first included
	Source              string // where it comes from
}

// Presets are the names that Parse takes in place of a curve.
func Presets() []Preset {
	return []Preset{
		{"sidekiq", "sidekiq", "none", 26, "Sidekiq 7, lib/sidekiq/job_retry.rb: count**4 + 15 + rand(10)*(count+1), 25 retries"},
		{"zizq", "poly:15s+n^4", "add:30s*n", 26, "Zizq, zizq.io/docs/cli/backoff.html: 15s + a^4 + a*rand(0 to 30s), 25 retries"},
		{"aws", "exp:1s..20s", "full", 3, "AWS SDKs, standard retry mode: full jitter up to 1 s doubling to 20 s, 3 attempts"},
		{"grpc", "exp:1s*1.6..2m", "20%", 5, "gRPC, doc/connection-backoff.md: 1 s x 1.6 to 120 s, jitter 0.2"},
		{"lock-busy", "constant:500ms", "30%", 100, "retry: fast and bounded, for a lock that is held for a short time"},
	}
}

func preset(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}
