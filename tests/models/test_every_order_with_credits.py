"""No sequence of messages leaves a reservation open, or charges anything but what was spent."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from agents.credits import CreditsAgent
from agents.projects import ProjectsAgent
from models.commands import RequestScene
from models.credit_messages import (
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    GrantCredits,
    ReserveCredits,
    SettleCredits,
)
from models.identifiers import FILM
from models.lifecycle import JobStatus, ProjectState, SceneStatus
from models.money import micros
from models.scene import wants_of
from tables.credits import CreditTable
from tests.fakes import OneOffer, PlainAdmission
from tests.models.test_every_order import EveryOrder

FOR_CREDITS = (GrantCredits, ReserveCredits, SettleCredits)
ANSWERS = (CreditsReserved, CreditsRefused, CreditsSettled)


class EveryOrderWithCredits(EveryOrder):
    """The same project, whose user pays with credits."""

    def __init__(self) -> None:
        super().__init__()
        self.accounts = CreditTable({})
        self.credits = CreditsAgent(credits_table=self.accounts, publisher=self.outbox)
        self.projects = ProjectsAgent(
            projects=self.projects_table,
            publisher=self.outbox,
            admission=PlainAdmission(),
            clock=self.clock,
            credited=OneOffer(0.15),
        )

    def agent_for(self, message: Any) -> Any:
        if isinstance(message, FOR_CREDITS):
            return self.credits
        return self.projects if isinstance(message, ANSWERS) else super().agent_for(message)

    def is_read(self, message: Any) -> bool:
        return isinstance(message, FOR_CREDITS + ANSWERS) or super().is_read(message)

    @rule(name=st.integers(0, 2), cents=st.sampled_from([10, 60, 500]))
    def somebody_grants_credits(self, name: int, cents: int) -> None:
        grant = GrantCredits(user_id="u1", grant_id=f"g{name}-{cents}", micros=cents * 10_000)
        if grant not in self.sent:
            self.sent.append(grant)

    def deliver(self, message: Any) -> None:
        before = len(self.outbox.of(RequestScene))
        super().deliver(message)
        for command in self.outbox.of(RequestScene)[before:]:
            if command.scene_id != FILM:
                self.work_that_is_asked_for_is_reserved()

    def work_that_is_asked_for_is_reserved(self) -> None:
        project = self.projects_table.rows["p1"]
        jobs = self.jobs_table.rows
        made = {job.request for job in jobs.values() if job.status is JobStatus.SUCCEEDED}
        missing = sum(
            0.15
            for scene, asked in zip(project.scenes, project.request.scenes, strict=True)
            if scene.status is SceneStatus.IN_PROGRESS
            for want in wants_of(asked, project.request)
            if want.request not in made
        )
        assert project.reservation is not None
        assert project.reservation.micros >= micros(project.tally.spent_usd + missing) or not missing
        reserved = [m.version for m in self.outbox.of(CreditsReserved)]
        assert project.reservation.moment.version in reserved

    @invariant()
    def nothing_is_held_once_the_newest_settlement_has_arrived(self) -> None:
        entry = self.accounts.entry("u1", "project/p1")
        settled = [m.version for m in self.outbox.of(CreditsSettled)]
        if entry is not None and settled and max(settled) == entry.version:
            assert entry.held == 0

    def teardown(self) -> None:
        super().teardown()
        project = self.projects_table.rows.get("p1")
        if project is None:
            return
        account = self.accounts.account("u1")
        assert account.held == 0
        assert account.charged == micros(project.receipt.spent_usd)
        assert project.state is not ProjectState.COMPLETED or account.charged >= 600_000


TestEveryOrderWithCredits = EveryOrderWithCredits.TestCase
TestEveryOrderWithCredits.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
