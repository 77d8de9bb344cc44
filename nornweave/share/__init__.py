"""Generations in object storage: a publisher copies them there, replicas on other machines follow and serve them.

Below the address: ``objects/sha256/<hex>`` are files, ``domains/<domain>/manifests/`` say which of them are a
generation, ``domains/<domain>/CURRENT`` names the manifest that counts, ``WORKSPACE`` says how to answer from it all.
Objects and manifests never change. The two pointers are replaced only by who read what they replace.
"""
