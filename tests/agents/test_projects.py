"""The projects agent, where the order of messages is not the usual one."""

from agents.projects import ProjectsAgent
from models.commands import SubmitProject
from models.credit_messages import CreditsReserved
from models.results import SceneProgressed
from tests.fakes import MemoryProjects, MovedClock, Outbox, PlainAdmission, a_request


async def test_an_answer_to_a_request_whose_row_died_with_its_worker_is_no_dead_letter() -> None:
    projects, outbox = MemoryProjects(), Outbox()
    agent = ProjectsAgent(projects=projects, publisher=outbox, admission=PlainAdmission(), clock=MovedClock())

    await agent.handle(SceneProgressed(project_id="p1", scene_id="scene-001", attempt=1), origin="o1")
    await agent.handle(CreditsReserved(user_id="u1", project_id="p1", version=2), origin="o2")
    assert outbox.messages == []

    await agent.handle(SubmitProject(project_id="p1", request=a_request(1)), origin="o3")
    assert projects.rows["p1"].is_open
