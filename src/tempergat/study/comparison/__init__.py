"""Which method wins on a graph, and is it real?"""
