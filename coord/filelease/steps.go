package filelease

// atStep is called between the steps that change files. It is nil but in
// tests, which kill the process there.
var atStep func(step string)

func step(name string) {
	if atStep != nil {
		atStep(name)
	}
}
