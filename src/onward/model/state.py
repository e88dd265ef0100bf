"""The fold of a log: one object that knows the tree, the branches, the surface, the brackets, the keys, the facts.

Both the door and the loader use it: `plan` checks an event against the rules and changes nothing, `apply` commits it.
"""
