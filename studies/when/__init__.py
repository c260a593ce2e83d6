"""When does a gate, a residual or a temperature help?"""
