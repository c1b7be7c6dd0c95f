"""The doctor looks at the serving certificate and at the front proxy's."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from adapter.foundation.reports.lines import CheckStatus, Line
from adapter.metrics.identity.certificates.generations import make_generation
from adapter.metrics.identity.certificates.issuing import certificate_pem
from demo.machine.certificates import Authority, Validity
from tests.adapter.commands.doctor.installation import CONFIG_MAP, Installation
from tests.adapter.metrics.identity.certificates.keeping_harness import CUSTOM
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.validity import of_yesterday


class TestTheCertificate:
    def line(self, installation: Installation) -> Line:
        return installation.lines()[f"certificate/{CUSTOM}"]

    def show(
        self, installation: Installation, authority: Authority, name: str, validity: Validity | None = None
    ) -> None:
        pair = authority.server([name], [], validity=validity)
        installation.endpoint.show(pair.certificate_file, pair.key_file)
        bundle = base64.b64encode(authority.ca_file.read_bytes()).decode()
        installation.spec(CUSTOM, caBundle=bundle)

    def test_a_certificate_of_another_ca_is_an_error(self, installation: Installation) -> None:
        bundle = certificate_pem(Authority(installation.folder / "other").root)
        installation.spec(CUSTOM, caBundle=base64.b64encode(bundle).decode())
        line = self.line(installation)
        assert line.status is CheckStatus.ERROR
        assert "kube-apiserver refuses it: none of the CAs in the caBundle has signed it" in line.message
        assert "--serving-secret" in line.fix

    def test_an_empty_ca_bundle_is_reported(self, installation: Installation) -> None:
        """Its kube-apiserver trusts the CAs of its own machine, which may be others than here."""
        installation.spec(CUSTOM, caBundle="")
        line = self.line(installation)
        assert line.status is CheckStatus.WARNING
        assert "the caBundle is empty" in line.message
        assert "put the CA that signed it into caBundle" in line.fix

    def test_an_empty_ca_bundle_does_not_excuse_another_name(self, installation: Installation) -> None:
        self.show(installation, Authority(installation.folder / "ca"), "adapter.elsewhere.svc")
        installation.spec(CUSTOM, caBundle="")
        line = self.line(installation)
        assert line.status is CheckStatus.ERROR
        assert "issue the certificate for tidewatch.monitoring.svc" in line.fix

    def test_an_empty_ca_bundle_means_the_cas_of_the_system(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        authority = Authority(installation.folder / "ca")
        self.show(installation, authority, "tidewatch.monitoring.svc")
        installation.spec(CUSTOM, caBundle=None)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
        assert "it is trusted" in self.line(installation).message
        self.show(installation, authority, "tidewatch.monitoring.svc", of_yesterday())
        installation.spec(CUSTOM, caBundle="")
        assert self.line(installation).status is CheckStatus.ERROR

    def test_a_ca_bundle_without_a_certificate_is_an_error(self, installation: Installation) -> None:
        installation.spec(CUSTOM, caBundle=base64.b64encode(b"no PEM").decode())
        line = self.line(installation)
        assert line.status is CheckStatus.ERROR
        assert "the caBundle has no certificate in PEM" in line.message

    def test_a_certificate_for_another_name_is_reported(self, installation: Installation) -> None:
        self.show(installation, Authority(installation.folder / "ca"), "adapter.elsewhere.svc")
        line = self.line(installation)
        assert "Hostname mismatch" in line.message
        assert "issue the certificate for tidewatch.monitoring.svc; it is for adapter.elsewhere.svc" in line.fix

    def test_a_certificate_with_the_name_as_common_name_alone_is_reported(self, installation: Installation) -> None:
        name = "tidewatch.monitoring.svc"
        pair = Authority(installation.folder / "ca").client(name, usages=())
        installation.endpoint.show(pair.certificate_file, pair.key_file)
        bundle = base64.b64encode(pair.ca_file.read_bytes()).decode()
        installation.spec(CUSTOM, caBundle=bundle)
        line = self.line(installation)
        assert line.status is CheckStatus.ERROR
        assert f"issue the certificate for {name}; it is for nobody" in line.fix

    def test_an_expired_certificate_is_reported(self, installation: Installation) -> None:
        name = "tidewatch.monitoring.svc"
        self.show(installation, Authority(installation.folder / "ca"), name, of_yesterday())
        line = self.line(installation)
        assert line.status is CheckStatus.ERROR
        assert "certificate has expired (it expired at " in line.message
        assert "renew" in line.fix

    def test_a_certificate_that_expires_soon_is_reported(self, installation: Installation) -> None:
        self.show(installation, Authority(installation.folder / "ca"), "tidewatch.monitoring.svc")
        assert self.line(installation).status is CheckStatus.WARNING

    def test_an_unverified_certificate_is_reported(self, installation: Installation) -> None:
        installation.spec(CUSTOM, caBundle="", insecureSkipTLSVerify=True)
        lines = installation.lines()
        assert lines[f"apiservice/{CUSTOM}"].status is CheckStatus.WARNING
        assert "not verified" in lines[f"certificate/{CUSTOM}"].message

    def test_an_unreachable_adapter_is_reported(self, installation: Installation) -> None:
        installation.endpoint.close()
        line = self.line(installation)
        assert line.status is CheckStatus.UNKNOWN
        assert "Connection refused" in line.message
        assert "--endpoint" in line.fix

    def test_a_server_without_tls_is_reported(self, installation: Installation) -> None:
        host, _, port = installation.cluster.url.removeprefix("http://").partition(":")
        line = installation.lines(f"--endpoint={host}:{port}")[f"certificate/{CUSTOM}"]
        assert line.status is CheckStatus.UNKNOWN


class TestTheFrontProxy:
    def test_a_missing_config_map_is_reported(self, installation: Installation) -> None:
        installation.cluster.objects.remove(CONFIG_MAPS, "kube-system", CONFIG_MAP)
        assert installation.lines()["front-proxy"].status is CheckStatus.UNKNOWN

    def test_a_config_map_that_may_not_be_read_is_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("get", "configmaps")
        assert "extension-apiserver-authentication-reader" in installation.lines()["front-proxy"].fix

    @pytest.mark.parametrize("broken", ["", "no certificate"])
    def test_a_config_map_without_a_ca_is_reported(self, installation: Installation, broken: str) -> None:
        installation.publish_front_proxy(broken, "", [])
        line = installation.lines()["front-proxy"]
        assert line.status is CheckStatus.ERROR
        assert "no front proxy is known" in line.message

    def test_one_ca_for_front_proxy_and_clients_is_a_warning_only_if_every_name_is_allowed(
        self, installation: Installation
    ) -> None:
        both = installation.authority("both")
        installation.publish_front_proxy(both, both, [])
        line = installation.lines()["front-proxy"]
        assert line.status is CheckStatus.WARNING
        assert "can act as any user" in line.message
        installation.publish_front_proxy(both, both, ["front-proxy-client"])
        assert installation.lines()["front-proxy"].status is CheckStatus.OK

    def test_an_expired_ca_is_reported(self, installation: Installation) -> None:
        ended = make_generation(["a"], datetime.now(tz=UTC) - timedelta(days=9), timedelta(days=2)).authority
        old = certificate_pem(ended).decode()
        installation.publish_front_proxy(old, "", ["a"])
        assert installation.lines()["front-proxy"].status is CheckStatus.ERROR
        installation.publish_front_proxy(old + installation.authority("new"), "", ["a"])
        assert installation.lines()["front-proxy"].status is CheckStatus.WARNING
