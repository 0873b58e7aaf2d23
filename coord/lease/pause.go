//go:build !interleave

package lease

func pause(point) {}
