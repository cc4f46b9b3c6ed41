// Command empty does nothing: what every Go program costs.
package main

func main() {}
