"""The tools for agents, over the Model Context Protocol: one definition, served over HTTP and over standard input.

===============  ==================================================================
``tools.py``     the seven tools: name, description, arguments, result, schemas, what they do
``calls.py``     what the tools take, checked as ``POST /query`` checks its body; the form and size of a result
``server.py``    the protocol server over the tools; ``nornweave mcp``: standard input and output
``endpoint.py``  ``/mcp``: streamable HTTP, stateless, inside the API
===============  ==================================================================
"""
