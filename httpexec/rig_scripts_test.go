package httpexec

// replies reads a request and sends a reply as it stands; the client has to go then.
func replies(format string, args ...any) script {
	return func(c *wire) {
		c.request()
		c.send(format, args...)
		c.stall()
	}
}

// closes reads a request, sends what is left of a reply, and closes.
func closes(part string) script {
	return func(c *wire) {
		c.request()
		c.send("%s", part)
	}
}

// resets reads a request, sends what is left of a reply, and resets: where there is something to read, once the client has read it.
func resets(part string) script {
	return func(c *wire) {
		c.request()
		c.send("%s", part)
		if part != "" {
			<-c.server.reached
		}
		c.reset()
	}
}

// stalls does the same, and then nothing until the attempt's time is over.
func stalls(part string) script {
	return func(c *wire) {
		c.request()
		c.send("%s", part)
		if part != "" {
			<-c.server.reached
		}
		c.server.timeUp()
		c.stall()
	}
}

const (
	okReply   = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	cutReply  = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"
	cutHeader = "HTTP/1.1 200 OK\r\nContent-Le"
)
