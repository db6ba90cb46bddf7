; The installer for Windows, for the user who runs it: no administrator is asked, and no default program changes.
;
;   makensis -DVERSION=1.0.0 -DBUNDLE=FOLDER -DOUT=checkpoint-inspector-1.0.0-windows.exe packaging/windows/installer.nsi
;
; BUNDLE is the folder that PyInstaller made on Windows, as an absolute path, like OUT. What stands in the registry for
; the files of the program is written by the program itself (`desktop install`), so that it stands in one place only.
; Untested on real hardware: built and run with Wine, see packaging/windows/README.md.

Unicode true
Target amd64-unicode
SetCompressor /SOLID lzma
RequestExecutionLevel user
ManifestDPIAware true

!include "MUI2.nsh"
!include "FileFunc.nsh"

!define NAME "Checkpoint Inspector"
!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\CheckpointInspector"

Name "${NAME}"
OutFile "${OUT}"
BrandingText "${NAME} ${VERSION}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${KEY}" "InstallLocation"

!define MUI_ICON "../../resources/desktop/checkpoint-inspector.ico"
!define MUI_UNICON "../../resources/desktop/checkpoint-inspector.ico"
!define MUI_FINISHPAGE_RUN "$INSTDIR\checkpoint-inspector-window.exe"
!insertmacro MUI_PAGE_LICENSE "../../LICENSE"
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

VIProductVersion "${VERSION}.0"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "FileDescription" "${NAME} setup"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "LegalCopyright" "Apache License 2.0"

Section "!${NAME}" Program
  SectionIn RO
  SetOutPath "$INSTDIR"
  ; What an older version had and this one has not must not be found by it.
  RMDir /r "$INSTDIR\_internal"
  File /r "${BUNDLE}/*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\checkpoint-inspector-window.exe"
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  IntFmt $0 "0x%08X" $0
  WriteRegStr HKCU "${KEY}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${KEY}" "DisplayIcon" "$INSTDIR\checkpoint-inspector-window.exe"
  WriteRegStr HKCU "${KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${KEY}" "EstimatedSize" "$0"
  WriteRegDWORD HKCU "${KEY}" "NoModify" 1
  WriteRegDWORD HKCU "${KEY}" "NoRepair" 1
SectionEnd

Section "Names and icons of files, Open With" Files
  nsExec::Exec '"$INSTDIR\checkpoint-inspector.exe" desktop install'
  Pop $0
  StrCmp $0 0 done
  DetailPrint "checkpoint-inspector desktop install gave $0"
done:
SectionEnd

LangString ProgramText ${LANG_ENGLISH} "The program and its entry in the Start menu."
LangString FilesText ${LANG_ENGLISH} "Offers the program for checkpoints. What opens them by default stays as it is."
!insertmacro MUI_FUNCTION_DESCRIPTION_BEGIN
  !insertmacro MUI_DESCRIPTION_TEXT ${Program} $(ProgramText)
  !insertmacro MUI_DESCRIPTION_TEXT ${Files} $(FilesText)
!insertmacro MUI_FUNCTION_DESCRIPTION_END

Section "Uninstall"
  nsExec::Exec '"$INSTDIR\checkpoint-inspector.exe" desktop remove'
  Pop $0
  ; By name: the folder may hold what others put there.
  RMDir /r "$INSTDIR\_internal"
  Delete "$INSTDIR\checkpoint-inspector.exe"
  Delete "$INSTDIR\checkpoint-inspector-window.exe"
  Delete "$INSTDIR\NOTICES.txt"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  DeleteRegKey HKCU "${KEY}"
SectionEnd
