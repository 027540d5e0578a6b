package leasetest

// one is a case: what must hold, which the name says after the number of the
// promise, and what a store must be for that to be asked.
type one struct {
	name  string
	needs needs
	run   func(e *env)
}

// cases returns all cases in the order of their story.
func cases() []one {
	var all []one
	for _, group := range [][]one{
		acquireCases, expiryCases, renewCases, releaseCases, retryCases, deadlineCases,
		contextCases, invalidCases, nameCases, concurrentCases, openCases,
		waitCases, inspectCases, dataCases, watchCases,
	} {
		all = append(all, group...)
	}
	return all
}
