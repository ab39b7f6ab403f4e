# SPDX-License-Identifier: GPL-2.0
"""The testbed in virtual time: scenarios, the guests that run them, figures, tables and plots."""
